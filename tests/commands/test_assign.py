"""``kagent assign`` and ``kagent partition`` answer line by line, also where a line is bad."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.cli import root
from kagent.errors import InputError
from tests.fixtures.consumers import started
from tests.fixtures.waiting import PATIENCE_S

DATA = Path(__file__).parents[1] / "strategies" / "data"
GOOD = json.dumps(
    {
        "id": "good",
        "strategy": "range",
        "partitions_per_topic": {"t": 3},
        "members": [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}],
    }
)


def run(*args: str, text: str = "") -> Result:
    return CliRunner().invoke(root, list(args), input=text)


def answers(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("name", ["golden_public.jsonl", "lag_public.jsonl", "fair_public.jsonl"])
def test_every_line_of_a_file_is_answered_under_its_own_strategy(name: str) -> None:
    result = run("assign", "--json", str(DATA / name))
    assert result.exit_code == 0
    lines = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    for line, answer in zip(lines, answers(result), strict=True):
        assert answer["id"] == line["id"]
        assert answer["error"] is None
        if not line.get("anomalies") and not line["strategy"].startswith("kip848"):
            assert answer["assignment"] == line["expected"]


def test_lag_global_has_its_knob() -> None:
    lags = {"t": [[0, 9], [1, 1], [2, 1], [3, 1]]}
    line = json.loads(GOOD) | {"partitions_per_topic": {"t": 4}, "lags": lags}

    def sizes(balance: str) -> list[int]:
        result = run(
            "assign", "--json", "--strategy", "lag-global", "--balance", balance, text=json.dumps(line)
        )
        return sorted(map(len, answers(result)[0]["assignment"].values()))

    assert sizes("0") == [2, 2]
    assert sizes("1") == [1, 3]
    assert run("assign", "--balance", "2", text=GOOD).exit_code == 2
    assert run("assign", "--balance", "nan", "--strategy", "lag-global", text=GOOD).exit_code == 2


def test_a_bad_line_gets_an_error_with_its_number_and_the_others_their_answer() -> None:
    twice = json.loads(GOOD)
    twice["members"].append(twice["members"][0])
    lines = [GOOD, "{no json", "", json.dumps(twice), "[]", GOOD.replace('"range"', '"best"'), GOOD]
    result = run("assign", "--json", text="\n".join(lines))
    assert result.exit_code == 2
    given = answers(result)
    assert [answer["error"] is None for answer in given] == [True, False, False, False, False, True]
    assert given[0]["assignment"] == given[-1]["assignment"] == {"a": [["t", 0], ["t", 1]], "b": [["t", 2]]}
    says = [answer["error"]["message"] for answer in given if answer["error"]]
    assert says[0].startswith("line 2: not JSON at column 2")
    assert says[1].startswith('line 4: members[2].id: "a" is a member twice')
    assert says[2] == "line 5: a JSON object is expected"
    assert says[3].startswith('line 6: strategy: "best" is not known')
    assert {answer["error"]["class"] for answer in given if answer["error"]} == {"InputError"}


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"members": [{"id": 1}]}',
        b'{"strategy": []}',
        b"null",
        b"1e999",
        b'"\\ud800"',
    ],
)
def test_no_line_breaks_the_command(line: bytes) -> None:
    result = CliRunner().invoke(root, ["assign", "--json"], input=line + b"\n" + GOOD.encode())
    assert result.exit_code == 2
    first, second = answers(result)
    assert first["error"]["message"].startswith("line 1: ")
    assert second["error"] is None


def test_a_count_beyond_reason_is_refused_before_memory_is_asked_for() -> None:
    result = run("assign", "--json", text=GOOD.replace('"t": 3', '"t": 2000000000'))
    assert "2000000000 partitions are more than" in answers(result)[0]["error"]["message"]


def test_a_partition_owned_twice_in_one_generation_is_refused_where_no_rule_settles_it() -> None:
    line = json.loads(GOOD)
    for member in line["members"]:
        member.update(owned=[["t", 1]], generation=4)
    (answer,) = answers(run("assign", "--json", text=json.dumps(line)))
    assert answer["error"]["message"] == (
        'line 1: members[1].owned: partition 1 of "t" is owned by members[0] in the same generation 4'
    )
    settled = answers(run("assign", "--json", "--strategy", "cooperative-sticky", text=json.dumps(line)))
    assert settled[0]["error"] is None
    served = answers(run("assign", "--json", "--strategy", "kip848-range", text=json.dumps(line)))
    assert "members[1].owned" in served[0]["error"]["message"]


def test_all_strategies_stand_side_by_side_with_their_numbers() -> None:
    text = json.dumps(
        {
            "id": "x",
            "lags": {"t0": [[0, 100000], [1, 50000], [2, 60000]]},
            "members": [{"id": "C0", "topics": ["t0"]}, {"id": "C1", "topics": ["t0"]}],
        }
    )
    measures = answers(run("assign", "--strategy", "all", "--json", text=text))[0]["strategies"]
    assert measures["range"]["measure"]["greatest_lag"] == 150_000
    assert measures["lag"]["measure"]["greatest_lag"] == 110_000
    table = run("assign", "--strategy", "all", text=text).stdout
    assert "lag-global" in table
    assert "1.43" in table


def test_one_strategy_shows_who_gets_what() -> None:
    shown = run("assign", "--strategy", "roundrobin", text=GOOD).stdout
    assert "t-0 t-2" in shown


def test_names_are_data_not_markup_nor_control_characters() -> None:
    shown = run("assign", text=GOOD.replace('"a"', '"[red]\\u001b[2J"')).stdout
    assert "[red]\\x1b[2J" in shown


def test_an_unknown_strategy_is_refused_before_reading() -> None:
    result = run("assign", "--strategy", "best", text=GOOD)
    assert isinstance(result.exception, InputError)


def test_partition_answers_lines_as_java_would() -> None:
    lines = [
        json.loads(line) for line in (DATA / "murmur2_public.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    asked = [{"key_hex": line["key_hex"], "n": int(n)} for line in lines for n in line["partition"]]
    expected = [
        {"murmur2": line["murmur2"], "partition": partition}
        for line in lines
        for partition in line["partition"].values()
    ]
    result = run("partition", text="\n".join(map(json.dumps, asked)))
    assert answers(result) == expected


def test_partition_shows_keys_and_their_skew() -> None:
    result = run("partition", "--partitions", "6", "abc", "abc", "")
    assert "479470107" in result.stdout
    assert "partition 3 gets 3 of 3 keys, 6.00 times the mean of 6 partitions" in result.stdout


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"key_hex": "6"}',
        '{"key_hex": 6, "n": 1}',
        '{"key_hex": "61", "n": 0}',
        '{"key_hex": "61"}',
    ],
)
def test_partition_names_the_bad_line_and_goes_on(line: str) -> None:
    result = run("partition", text=line + '\n{"key_hex": "616263", "n": 6}')
    assert result.exit_code == 2
    bad, good = answers(result)
    assert bad["error"]["message"].startswith("line 1: ")
    assert good == {"murmur2": 479470107, "partition": 3}


@pytest.mark.kafka
async def test_the_scenario_may_come_from_a_live_group(broker: str) -> None:
    topic = f"live-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(PATIENCE_S)
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=broker, group_id=topic, auto_offset_reset="earliest")
    async with started(consumer):
        async with asyncio.timeout(30):
            while True:
                await asyncio.sleep(0.05)
                if len(consumer.assignment()) == 4:
                    break
        asked = ("--bootstrap", broker, "assign", "--group", topic)
        result = await asyncio.to_thread(run, *asked, "--strategy", "sticky", "--json")
        (answer,) = answers(result)
        (rows,) = answer["assignment"].values()
        assert sorted(rows) == [[topic, partition] for partition in range(4)]
        table = await asyncio.to_thread(run, *asked)
        assert "kip848-uniform" in table.stdout
        nobody = await asyncio.to_thread(run, "--bootstrap", broker, "assign", "--group", "no-such-group")
        assert isinstance(nobody.exception, InputError)
