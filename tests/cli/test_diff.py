"""`kdissect diff` as a user meets it: exit codes, forms, sides chosen of one capture, bad use."""

import json

import pytest

from tests.analysis.diff.editing import bundled
from tests.cases import cases
from tests.cli.test_commands import kdissect

pytestmark = pytest.mark.slow

JAVA, AGAIN, OTHER = (bundled(f"compare-{name}") for name in ("java-1", "java-2", "librdkafka-1"))


@pytest.mark.long
def test_the_same_is_0_and_another_client_is_1() -> None:
    same, other = kdissect("diff", JAVA, AGAIN), kdissect("diff", JAVA, OTHER)
    assert (same.returncode, same.stderr) == (0, b"")
    assert same.stdout.startswith(b"No differences")
    assert (other.returncode, other.stderr) == (1, b"")
    assert b"version: v18 vs v16" in other.stdout


def test_json_has_differences_pairs_and_times() -> None:
    done = kdissect("diff", JAVA, OTHER, "-f", "json")
    value = json.loads(done.stdout)
    assert (value["kind"], value["same"]) == ("comparison", False)
    assert value["a"]["clients"] == ["apache-kafka-java 4.3.1"]
    [fetch] = [each for each in value["timings"] if (each["api"], each["about"]) == ("Fetch", "")]
    assert all(490_000_000 < interval < 520_000_000 for interval in fetch["interval_ns"])
    assert {"a": 1, "b": 1, "verdict": "different"} in value["pairs"]
    isolation = next(
        each for each in value["differences"] if (each["api"], each["path"]) == ("Fetch", "isolation_level")
    )
    assert isolation["settings"] == {"Java": "isolation.level", "librdkafka": "isolation.level"}
    assert isolation["words"].startswith("A has the schema's default; also changes ListOffsets ")


@pytest.mark.long
@cases(("form", "first"), [("markdown", b"\n# "), ("html", b"<!DOCTYPE html>"), ("text", b"Behavior of 3 sides")])
def test_three_captures_are_a_matrix(form: str, first: bytes) -> None:
    done = kdissect("diff", JAVA, AGAIN, OTHER, "-f", form)
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.startswith(first)
    assert b"isolation level" in done.stdout


def test_two_clients_of_one_capture() -> None:
    done = kdissect("diff", JAVA, "--a", 'client_id == "producer-1"', "--b", 'client_id contains "consumer"')
    assert done.returncode == 1
    assert b"producer-1" in done.stdout.splitlines()[1]


@pytest.mark.long
def test_connections_matched_by_hand_are_compared_with_each_other_alone() -> None:
    done = kdissect("diff", JAVA, JAVA, "--match", "A:1=B:1", "--match", "A:C5=B:C5")
    assert done.returncode == 0
    crossed = kdissect("diff", JAVA, JAVA, "--match", "A:1=B:5")
    assert crossed.returncode == 1
    assert b"on matched connections 1: 0 vs 2 [only in B]" in b" ".join(crossed.stdout.split())


@cases(
    ("arguments", "words"),
    [
        ((JAVA,), b"with one capture, choose what to compare with --a and --b"),
        ((JAVA, OTHER, "--match", "5=5"), b"--match 5=5: write the connections as A:3=B:5"),
        ((JAVA, AGAIN, OTHER, "--a", "api == Fetch"), b"need two sides"),
        ((JAVA, OTHER, "--b", "api = Fetch"), b"--b: column"),
        ((JAVA, OTHER, "--b", "api == DeleteTopics"), b"contains no Kafka request"),
        ((JAVA, "nowhere.pcapng"), b"nowhere.pcapng"),
    ],
)
def test_bad_use_is_2_and_a_plain_line(arguments: tuple[str, ...], words: bytes) -> None:
    done = kdissect("diff", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert words in done.stderr.splitlines()[0]
