"""How a cluster is called of which only the address was given."""

from __future__ import annotations

import pytest

from kagent.commands.cluster_name import reported_name
from kagent.commands.explain import AskedGroup
from kagent.errors import InputError
from kagent.settings import Settings, load


@pytest.fixture
def of_an_address(monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("KAGENT_CONFIG", "KAGENT_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    return load(None, "a:9092")


def test_it_is_called_as_the_only_reported_cluster(of_an_address: Settings) -> None:
    assert reported_name(of_an_address, "main", ["demo"]) == "demo"
    assert reported_name(of_an_address, "main", ["demo", "main"]) == "main"
    assert reported_name(of_an_address, "main", []) == "main"


def test_of_several_reported_clusters_one_must_be_chosen(of_an_address: Settings) -> None:
    with pytest.raises(InputError, match="choose one with --cluster: demo, eu"):
        reported_name(of_an_address, "main", ["eu", "demo"])


def test_a_name_that_was_given_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAGENT_CONFIG", raising=False)
    named = load(None, "a:9092", "prod")

    assert [*named.clusters] == ["prod"]
    assert reported_name(named, "prod", ["demo"]) == "prod"


def answer(address: str, cluster: str = "demo") -> dict[str, object]:
    return {"cluster": cluster, "story": {"tool_options": f"--bootstrap-server {address} --command-config c"}}


def test_a_workers_answer_about_another_address_is_about_another_group(of_an_address: Settings) -> None:
    meant = AskedGroup.of(of_an_address, "main", "orders")

    assert meant.is_in(answer("a:9092"))
    assert meant.is_in(answer("b:9092,a:9092"))
    assert not meant.is_in(answer("b:9092"))


def test_without_an_address_the_name_of_the_cluster_decides() -> None:
    meant = AskedGroup("orders", "main")

    assert meant.is_in(answer("b:9092", "main"))
    assert not meant.is_in(answer("b:9092", "demo"))


def test_an_older_worker_that_names_no_address_is_known_by_the_name_of_the_cluster() -> None:
    meant = AskedGroup("orders", "main", "a:9092")

    assert meant.is_in({"cluster": "main", "story": {}})
    assert not meant.is_in({"cluster": "demo", "story": {}})
