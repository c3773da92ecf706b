"""What can be done about a finding: the reassignment, what each strategy would give, actions, and the words. Pure."""
