"""The command line, one module a command; ``kagent.cli`` finds them by name and loads only the one asked for."""

import time

BEGAN_S = time.monotonic()
"""When the command began, before the modules that it needs are loaded: a person waits for those too."""
