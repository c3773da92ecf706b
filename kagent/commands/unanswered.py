"""What a command says of groups whose coordinator does not answer: the others are shown all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kagent.commands import output
from kagent.kafka.descriptions import Key
from kagent.text import counted, few, partition_name, shown


def report(
    failed: Mapping[str, str],
    unlisted: Mapping[int, str],
    unlisting: Mapping[str, str] | None = None,
    unread: Mapping[Key, str] | None = None,
) -> bool:
    """Say on standard error what is missing and why, if anything is.

    :param failed: group → why its coordinator does not answer.
    :param unlisted: partition of ``__consumer_offsets`` → why no coordinator answers for it.
    :param unlisting: broker → why it lists none of its groups.
    :param unread: topic and partition → why its leader gives no log offsets.
    """
    sentences = [*_groups(failed), *_partitions(unlisted)]
    if not unlisted:
        # Else the sentence about the partitions says it, and of which groups.
        sentences += [f"Groups may be missing: {why}." for why in sorted({*(unlisting or {}).values()})]
    sentences += _log_offsets(unread or {})
    for sentence in sentences:
        output.say(sentence, indent=2, err=True)
    return bool(sentences)


def _log_offsets(unread: Mapping[Key, str]) -> Iterator[str]:
    named = {partition_name(*key): why for key, why in sorted(unread.items())}
    for why, names in _by_reason(named):
        yield f"Log offsets not known, as the leader does not answer ({why}): {counted(len(names), 'partition')}, {few(names)}."


def _groups(failed: Mapping[str, str]) -> Iterator[str]:
    for why, names in _by_reason({shown(name): reason for name, reason in failed.items()}):
        yield f"Not known, as the coordinator does not answer ({why}): {counted(len(names), 'group')}, {few(names)}."


def _partitions(unlisted: Mapping[int, str]) -> Iterator[str]:
    for why, numbers in _by_reason({str(number): reason for number, reason in sorted(unlisted.items())}):
        yield (
            "Groups may be missing: no coordinator answers for partition"
            f"{'s' if len(numbers) > 1 else ''} {few(numbers)} of __consumer_offsets ({why}). The log of the broker that leads it "
            "says why."
        )


def _by_reason(reasons: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    for why in sorted(set(reasons.values())):
        yield why, [name for name, reason in reasons.items() if reason == why]
