"""``make demo``: the whole job on a real broker in a few minutes, with a twin that does not follow the advice."""
