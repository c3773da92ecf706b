"""What `kagent assignor` prints for consumers and brokers."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from kagent.cli import root


def printed(*arguments: str) -> str:
    answer = CliRunner().invoke(root, [*arguments[:-1], "assignor", arguments[-1]])
    assert answer.exit_code == 0, answer.exception
    return answer.output


def test_the_lines_of_consumers_need_no_cluster_in_the_settings() -> None:
    lines = printed("--consumer").splitlines()

    assert lines[-2:] == [
        "partition.assignment.strategy=io.kagent.assignor.KagentConsumerAssignor",
        "kagent.apply=dry",
    ]


def test_a_cluster_that_is_not_called_main_is_named(tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text("clusters: {east: {bootstrap: 'here:9092'}}\n")

    assert "kagent.cluster=east" in printed("--config", str(file), "--consumer")
    assert "kagent.cluster=west" in printed("--cluster", "west", "--consumer")
