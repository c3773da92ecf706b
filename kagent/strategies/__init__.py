"""Every assignment strategy the field knows: a scenario in, an assignment out."""
