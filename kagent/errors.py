"""The errors that people see.

KagentError            one sentence: what is wrong and what to do; exit code 2
├── SettingsError      the settings file or a KAGENT_ variable
├── KafkaError         a cluster that cannot be reached, refuses, or lacks a right
├── InputError         a line, a file or an argument that cannot be read; names line and field
└── SetupError         Java, jars, ports, disks: the machine lacks something

``kagent.offsets.DecodeError`` is apart: it is about bytes, never shown without the record it came from.
"""


class KagentError(Exception):
    """One sentence for a person: what is wrong and what to do about it."""


class SettingsError(KagentError):
    """The settings say something that cannot be."""


class KafkaError(KagentError):
    """A cluster cannot be reached, refuses us, or lacks a right or a topic."""


class InputError(KagentError):
    """Input from a person or a file cannot be read; the sentence names the line and the field."""


class SetupError(KagentError):
    """The machine lacks something that kagent needs: Java, a jar, a free port, disk."""


def missing_right(right: str) -> str:
    """What every message says of a right that our user lacks. ``right``: operation and resource, "CREATE on the topic x"."""
    return f"the user lacks {right} (`kagent acls` prints what is needed)"
