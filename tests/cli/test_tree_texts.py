"""Trees of messages with the same bytes are made once, and say what each would say."""

from pathlib import Path
from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.cli.render.trees import TreeTexts, tree_lines
from dissector.exchange import model
from dissector.index.fetch_sessions import FetchSessions
from dissector.protocol.message import Traced, trace
from tests.index.test_fetch_sessions import fetch
from tests.traffic import Turn, capture_of, conversation, request, response


def printed(path: Path | str, texts: TreeTexts | None) -> str:
    with Capture([str(path)]) as capture:
        list(capture.read())
        return "\n".join(line for each in capture.at(range(len(capture))) for line in tree_lines(each, 0, texts))


@pytest.mark.slow
def test_texts_are_those_of_each_message(bundled: Path) -> None:
    assert printed(bundled, TreeTexts()) == printed(bundled, None)


def test_messages_that_differ_in_their_correlation_id_are_traced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced: list[bytes] = []

    def watched(data: bytes, *args: Any) -> Traced:
        traced.append(data)
        return trace(data, *args)

    monkeypatch.setattr(model, "trace", watched)
    numbers = (7, -1, 7 << 24, (1 << 31) - 1)
    turns = [turn for n in numbers for turn in (Turn(True, request(n)), Turn(False, response(n)))]
    turns += [Turn(True, request(8, client_id=b"other")), Turn(False, response(8))]  # one byte more is another message
    path = capture_of(tmp_path, conversation(turns))
    text = printed(path, TreeTexts())
    assert len(traced) == 3
    assert text.count(f"correlation_id: {7 << 24}  [8+4 INT32]") == 1
    assert text.count("correlation_id: -1  ") == 2
    assert text == printed(path, None)


def test_a_tree_names_the_first_topics_of_a_session_without_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them for each Fetch would take time with the square of these."""
    monkeypatch.delattr(FetchSessions, "partitions")
    steps = [({"a": [0, 1]}, {}), ({"b": [4]}, {}), ({}, {"a": [0, 1]}), ({}, {"b": [4]})]
    steps += [({f"t{n}": [0]}, {}) for n in range(5)]
    turns = [Turn(True, fetch(n, n, *step)) for n, step in enumerate(steps)]
    lines = printed(capture_of(tmp_path, conversation(turns)), TreeTexts()).splitlines()
    sessions = [line.strip() for line in lines if line.startswith("  fetches by ")]
    assert sessions[:4] == [
        f"fetches by {words}" for words in ("session a[0,1] b[4]", "session b[4]", "an empty session", "session t0[0]")
    ]
    assert sessions[-1].endswith(" +2")
