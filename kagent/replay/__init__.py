"""A recorded piece of ``__consumer_offsets`` and its log ends, run through the evaluation of groups. Pure but for reading."""
