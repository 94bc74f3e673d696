"""The history of a message claims no more than the imported releases show."""

from tests.cli.test_commands import kdissect


def test_a_version_of_the_oldest_release_may_be_older_and_no_meaning_is_made_up() -> None:
    words = kdissect("explain", "Heartbeat", "4").stdout.decode()
    assert "Kafka 3.6.2 or older to 4.4.0" in words
    assert "meaning" not in words
    history = words[words.index("HeartbeatRequest, version by version") :].splitlines()
    assert history[1].split()[0] == "v0"
    assert history[2].strip() == "the first version"
    assert history[4].strip() == "no field changed"
