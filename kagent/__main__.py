"""``python -m kagent``: the same as the ``kagent`` command."""

import sys

from kagent.cli import main

sys.exit(main())
