"""The command line, one module a command; ``kagent.cli`` finds them by name and loads only the one asked for."""
