"""`kdissect explain` as a user meets it."""

import os
import pty
import subprocess

import pytest

from tests.cases import cases
from tests.cli.test_commands import KDISSECT, kdissect


def test_a_page_has_layout_picture_history_and_example() -> None:
    done = kdissect("explain", "fetch", "12")
    text = done.stdout.decode()
    assert done.returncode == 0
    assert text.startswith("Fetch v12, API key 1\n")
    assert "RequestHeader v2, ResponseHeader v1" in text
    assert "    partition_max_bytes   INT32" in text
    assert "|                          max_wait_ms                          |" in text
    assert "topics.topic_id: added, UUID" in text
    assert '12  00 0a 6f 72 64 65 72 73    client_id: "orders-app"' in text
    assert "\x1b" not in text


@pytest.mark.long
@cases(
    ("page", "words"),
    [
        ("primitives", "COMPACT_NULLABLE_STRING"), ("records", "zstd"), ("headers", "ControlledShutdown"),
        ("errors", "UNKNOWN_TOPIC_OR_PARTITION"), ("RequestHeader", "client_id"), ("18", "ApiVersions v5"),
        ("VoteRequest", "candidate_id"), ("InitProducerIdRequest", "v6  Kafka 4.3.1 to 4.4.0, unstable"),
        ("NOT_COORDINATOR", "error code 16, retriable"), ("member_id_required", "a normal step of the protocol"),
        ("throttle-time", "a rule for the client"), ("LeaderAndIsr", "deprecated"),
        ("ConsumerProtocolSubscription", "put their version, an INT16, before"),
    ],
)  # fmt: skip
def test_there_are_pages_of_other_things_too(page: str, words: str) -> None:
    done = kdissect("explain", page)
    assert done.returncode == 0
    assert words in done.stdout.decode()


@cases(
    ("words", "answer"),
    [
        (["ftch"], "nothing is called 'ftch'; did you mean Fetch"),
        (["Fetch", "99"], "Fetch has no version 99; it has 0-18"),
        (["records", "2"], "records has no versions"),
        (["tiny-batches", "2"], "tiny-batches has no versions"),
        (["NOT_LEADER"], "nothing is called 'NOT_LEADER'; did you mean NOT_LEADER_OR_FOLLOWER"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(words: list[str], answer: str) -> None:
    done = kdissect("explain", *words)
    assert (done.returncode, done.stdout) == (2, b"")
    [line] = done.stderr.decode().splitlines()
    assert line.startswith(f"kdissect: {answer}")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("color", "is_colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colors_unless_no_color_is_set(color: dict[str, str], is_colored: bool) -> None:
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    with subprocess.Popen(
        [*KDISSECT, "explain", "Heartbeat", "0"], stdout=theirs, env=environment | {"TERM": "xterm-256color"} | color
    ) as running:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # a terminal that nobody writes to any more
                break
            shown += part
    os.close(ours)
    assert running.returncode == 0
    assert b"Heartbeat v0" in shown
    assert (b"\x1b[" in shown) is is_colored
