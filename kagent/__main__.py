"""``python -m kagent``: the same as the ``kagent`` command."""

from kagent.cli import run

run()
