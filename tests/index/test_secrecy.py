"""What is found of many requests at once, to know that their connections have no secrets."""

import random
from pathlib import Path

import numpy as np

from dissector.capture_session import Capture
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol import message
from tests.cases import cases
from tests.conftest import PCAPS


def requests_read_together(path: Path) -> int:
    """Count the requests that are found, together, to be nothing else to their end; decode each of them."""
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        indexer = capture.pipeline.indexer
        table, frames, secrecy = indexer.table, indexer.frames, indexer.conversation_state._secrecy
        has_request = (table.kind.values == RowKind.EXCHANGE) & (table.request.values != NO_FRAME)
        sent = secrecy._in_stream_order(np.flatnonzero(has_request))
        read = sent.where(secrecy._are_read(sent))
        columns = (read.frame, read.api_key, read.version)
        for frame, key, version in zip(*(column.tolist() for column in columns), strict=True):
            data, whole = frames.read(frame)
            decoded = message.read(data, message.request_layout(key, version), whole)
            assert whole == len(data)
            assert not decoded.rest
            assert not decoded.findings
        return len(read.frame)


@cases("name", ["java", "librdkafka", "java-admin"])
def test_requests_that_are_looked_at_together_can_be_decoded_to_their_end(name: str, tmp_path: Path) -> None:
    recording = PCAPS / f"{name}.pcapng"
    assert requests_read_together(recording)
    damaged = bytearray(recording.read_bytes())
    chance = random.Random(name)
    for _ in range(len(damaged) // 300):
        damaged[chance.randrange(1000, len(damaged))] ^= 1 << chance.randrange(8)
    path = tmp_path / recording.name
    path.write_bytes(damaged)
    requests_read_together(path)
