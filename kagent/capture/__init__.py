"""Captures: what consumer groups wrote to ``__consumer_offsets`` for a while, with the log ends of their topics."""
