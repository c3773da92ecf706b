"""The errors that people see.

KagentError            one sentence: what is wrong and what to do; exit code 2
├── SettingsError      the settings file or a KAGENT_ variable
├── KafkaError         a cluster that cannot be reached, refuses, or lacks a right or a topic
│   └── Misconfigured  a login, a certificate or a topic that does not fit the settings
├── InputError         a line, a file or an argument that cannot be read; names line and field
└── SetupError         Java, jars, ports, disks: the machine lacks something

One rule at the start of every command. One that answers and ends, ends with the sentence. A service (pipeline, worker, history,
alert) waits for what time or somebody else may mend, says so and tries again; for the rest it ends with the sentence too. Which of
the two it is, says :func:`mendable` alone.

``kagent.offsets.DecodeError`` is apart: it is about bytes, never shown without the record it came from.
"""


class KagentError(Exception):
    """One sentence for a person: what is wrong and what to do about it."""


class SettingsError(KagentError):
    """The settings say something that cannot be."""


class KafkaError(KagentError):
    """A cluster cannot be reached, refuses us, or lacks a right or a topic."""


class Misconfigured(KafkaError):
    """Something in the settings does not fit the cluster: waiting does not mend it."""


class InputError(KagentError):
    """Input from a person or a file cannot be read; the sentence names the line and the field."""


class SetupError(KagentError):
    """The machine lacks something that kagent needs: Java, a jar, a free port, disk."""


def mendable(error: BaseException) -> bool:
    """Whether waiting may mend it: a cluster comes back, a right is given, a topic made; a wrong password or port stays wrong."""
    return isinstance(error, KafkaError) and not isinstance(error, Misconfigured)


def missing_right(right: str) -> str:
    """What every message says of a right that our user lacks. ``right``: operation and resource, "CREATE on the topic x"."""
    return f"the user lacks {right} (`kagent acls` prints what is needed)"
