"""The model of one group: what each member has to do, can do and does; evidence; and one detector a verdict. Pure."""
