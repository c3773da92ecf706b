"""Replay of captures through the evaluation of groups."""
