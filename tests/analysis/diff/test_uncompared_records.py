"""What workers of Kafka Connect write of their own state is not compared; what their connectors write is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.analysis.diff import DiffReason
from tests.analysis.diff.editing import Lines, compared, edited, entry_texts, of
from tests.survey.recorded import plain

pytestmark = pytest.mark.slow

LATER = [pytest.param(name, marks=pytest.mark.long) for name in ("connect-3.4", "mirror-maker-3.4", "mirror-maker-4.3")]
STATE = "the records in which workers of Kafka Connect keep their state, in "


@pytest.mark.parametrize("client", ["connect-4.3", *LATER])
def test_the_state_of_workers_is_not_compared(client: str) -> None:
    comparison = compared(plain(client), plain(client, 2))
    assert entry_texts(comparison) == []
    assert [words.startswith(STATE) for words in comparison.ignored].count(True) == 1


def called(words: str) -> Callable[[Lines], None]:
    """Let the producers of configs, offsets and statuses have other client ids."""

    def edit(lines: Lines) -> None:
        for line in of(lines, "Produce"):
            header = line["request"]["header"]
            if header["client_id"].endswith(("configs", "offsets", "statuses")):
                header["client_id"] = words

    return edit


@pytest.mark.long
@pytest.mark.parametrize("words", ["shop-configs", "billing-connect-4.3-plain-{}-prices"])
def test_who_is_called_otherwise_is_no_worker(words: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    sides = [edited(plain("connect-4.3", n), tmp_path_factory.mktemp("side"), called(words.format(n))) for n in (1, 2)]
    found = compared(*sides).entries
    assert any(each.reason is DiffReason.CONTENT and "-config" in each.explanation for each in found)


def one_fewer(lines: Lines) -> Lines:
    """Leave out a request of the connector."""
    gone = next(
        line for line in of(lines, "Produce") if line["request"]["header"]["client_id"].startswith("connector-")
    )
    return [line for line in lines if line is not gone]


@pytest.mark.long
def test_what_a_connector_writes_is_compared(tmp_path: Path) -> None:
    path = plain("connect-4.3")
    assert not compared(path, edited(path, tmp_path, one_fewer)).is_same


def in_partition(number: int, *, keyed: bool) -> Callable[[Lines], None]:
    """Let all records go to one partition, with keys or without."""

    def edit(lines: Lines) -> None:
        for line in of(lines, "Produce"):
            for part, topics, partitions in (("request", "topic_data", "partition_data"),
                                             ("response", "responses", "partition_responses")):  # fmt: skip
                for topic in line[part]["body"][topics]:
                    for partition in topic[partitions]:
                        partition["index"] = number
            for topic in line["request"]["body"]["topic_data"]:
                for batch in (
                    each for partition in topic["partition_data"] for each in partition["records"]["batches"]
                ):
                    for record in batch["records"]:
                        record["key"] = "6b" if keyed else None

    return edit


@pytest.mark.parametrize("keyed", [False, True])
def test_where_records_without_keys_go_is_chance(tmp_path_factory: pytest.TempPathFactory, *, keyed: bool) -> None:
    path = plain("java-4.3")
    sides = [edited(path, tmp_path_factory.mktemp("side"), in_partition(number, keyed=keyed)) for number in (0, 1)]
    assert compared(*sides).is_same is not keyed
