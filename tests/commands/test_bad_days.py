"""What is wrong is one sentence that says what to do, without a traceback, and exit code 2."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest


def kagent(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), **environment}
    command = [sys.executable, "-m", "kagent", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)


def assert_one_sentence(answer: subprocess.CompletedProcess[str], *words: str) -> None:
    assert answer.returncode == 2, answer.stderr
    assert "Traceback" not in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
    for word in words:
        assert word in answer.stderr


@pytest.mark.slow
def test_no_cluster() -> None:
    assert_one_sentence(kagent("lag"), "No cluster is configured", "KAGENT_BOOTSTRAP")


@pytest.mark.slow
def test_a_settings_file_that_is_not_there() -> None:
    assert_one_sentence(
        kagent("--config", "/nowhere/kagent.yaml", "lag"), "cannot be read", "/nowhere/kagent.yaml"
    )


@pytest.mark.slow
def test_a_taken_web_port(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        answer = kagent("--bootstrap", "127.0.0.1:1", "worker", "--web-port", port)

    assert_one_sentence(answer, f"web port {port} cannot be used", "worker.web_port")


@pytest.mark.kafka
def test_a_group_that_is_not_there(broker: str) -> None:
    assert_one_sentence(kagent("--bootstrap", broker, "lag", "no\x1bsuch"), "no group no\\x1bsuch")


@pytest.mark.slow
def test_java_that_is_missing(tmp_path: Path) -> None:
    answer = kagent("jars", PATH=str(tmp_path))

    assert_one_sentence(answer, "Java was not found", "install OpenJDK 17 or 21")


@pytest.mark.kafka
def test_an_exit_code_that_a_command_asks_for_is_the_process_s(broker: str) -> None:
    answer = kagent("--bootstrap", broker, "topics", "--check", KAGENT_TOPICS__PREFIX="never-made-")

    assert answer.returncode == 1, answer.stdout
