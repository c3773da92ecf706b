"""A worker that loses a right names it, does not pretend to work, and heals when it is given back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kagent.kafka.acls import Rule, rules, to_apply
from kagent.settings import load
from tests.worker.test_poison import Pipeline, page
from tests.worker.test_rights import as_user

if TYPE_CHECKING:
    from tests.conftest import Guarded

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TAKEN = [
    Rule("write", "topic", "kagent-lag-changelog"),
    Rule("read", "group", "kagent"),
    Rule("describe", "topic", "*"),
]
"""Without the first no row is kept, without the second nothing is assigned; the third is on users' topics. That each single right is found is tested without a worker."""


@pytest.fixture
def running(kagent: Callable[..., Any], own_guarded: Guarded) -> Iterator[Any]:
    made = kagent(broker=own_guarded.broker, logins={"worker": as_user(own_guarded, "worker")})
    own_guarded.allow("worker", rules(load(made.config).topics)["worker"])
    made.topic("orders", 1)
    made.produce("orders", {0: 5})
    made.commit("sound", {("orders", 0): 1})
    pipeline = Pipeline(made)
    yield made
    pipeline.stop()


def watching(running: Any) -> bool:
    state = running.state()
    return bool(state and state.status == "watching" and page(running, "/healthz")[0] == 200)


def names(rule: Rule) -> str:
    name = "orders" if rule.name == "*" and rule.resource == "topic" else rule.name
    return f"lacks {rule.operation.upper()} on the {rule.resource.replace('_', ' ')} {name}"


def test_a_lost_right_is_named_everywhere_and_its_return_heals(running: Any, own_guarded: Guarded) -> None:
    running.start_worker()
    running.eventually("the worker watches", lambda: watching(running))

    for rule in TAKEN:
        own_guarded.forbid("worker", rule)
        named = names(rule)
        running.eventually(f"/healthz says: {named}", lambda n=named: says(running, n))
        running.eventually(f"the state says: {named}", lambda n=named: blind(running, n))
        assert named in running.log("worker")
        own_guarded.allow("worker", [rule])
        running.eventually(f"healed of: {named}", lambda: watching(running))


def test_what_apply_needs_is_named_and_blinds_nothing(running: Any, own_guarded: Guarded) -> None:
    settings = yaml.safe_load(running.config.read_text())
    running.config.write_text(
        yaml.safe_dump({**settings, "groups": [{"match": "orders-*", "apply": "auto"}]})
    )
    needed = to_apply(load(running.config).topics, ("orders-*",))
    running.start_worker()

    # Of a topic that is not there yet nothing but CREATE can be asked.
    named = [names(rule) for rule in needed if rule.resource == "group" or rule.operation == "create"]
    running.eventually("the worker watches, and names all that it lacks", lambda: lacks(running, named))
    own_guarded.allow("worker", needed)
    running.eventually("nothing is lacking", lambda: watching(running) and not lacking(running))


def lacking(running: Any) -> list[str]:
    return list(json.loads(page(running, "/healthz")[1])["lacking"])


def lacks(running: Any, named: list[str]) -> bool:
    state = running.state()
    if state is None or not watching(running):
        return False
    sentences = lacking(running)
    return all(
        name in (state.reason or "") and any(name in sentence for sentence in sentences) for name in named
    )


def says(running: Any, named: str) -> bool:
    status, body = page(running, "/healthz")
    return status == 503 and any(named in sentence for sentence in json.loads(body)["lacking"])


def blind(running: Any, named: str) -> bool:
    state = running.state(since=time.time() - 10)
    return bool(state and state.status == "blind" and named in (state.reason or ""))
