"""What is known of many connections is what is known of each; the kinds of all rows are those of each."""

from pathlib import Path

import numpy as np

from dissector.capture_session import Capture
from tests.conftest import PCAPS

SEGMENT = PCAPS / "segments" / "rdkafka-codecs-0" / "00000000000000000000.log"


def test_ends_that_were_captured_of_many_connections(tmp_path: Path) -> None:
    """A file comes first; of the second capture the end is cut off."""
    whole = PCAPS / "compare-java-1.pcapng"
    part = tmp_path / "part.pcapng"
    part.write_bytes((PCAPS / "librdkafka.pcapng").read_bytes()[:20_000])
    with Capture([str(SEGMENT), str(whole), str(part)]) as capture:
        for _ in capture.read():
            pass
        numbers = np.arange(1, len(capture.connections) + 2)
        is_opened, is_closed = capture.connections.seen_ends(numbers)
        assert is_opened.tolist() == [capture.connections.is_opened(each) for each in numbers.tolist()]
        assert is_closed.tolist() == [capture.connections.closed(each) is not None for each in numbers.tolist()]
        assert capture.index.kinds().tolist() == capture.index.numbers(np.arange(len(capture))).kind.tolist()
        assert not is_opened[0]
        assert not is_closed[0]
        assert set(is_closed[1:].tolist()) == {False, True}
