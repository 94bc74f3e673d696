"""Whether a Produce request is answered is read from its `acks`, in every version, with and without a transaction."""

import random
from pathlib import Path

from dissector.capture_session import Capture
from dissector.protocol.codec.plan import plan
from dissector.protocol.schema.headers import request_header_version
from dissector.protocol.schema.loader import request
from tests.cases import cases
from tests.protocol.random_messages import make
from tests.traffic import Turn, capture_of, conversation
from tests.traffic import request as frame


@cases("version", list(request(0).valid_versions))
def test_acks_are_read_in_every_version(tmp_path: Path, version: int) -> None:
    chance = random.Random(version)
    turns, expected = [], []
    for number in range(40):
        values, body = make(plan("ProduceRequest", version), chance)
        tags = b"\x00" if request_header_version(0, version) == 2 else b""
        turns.append(Turn(True, frame(number, api_key=0, version=version, body=tags + body)))
        expected.append("no-response-expected" if values["acks"] == 0 else "unanswered")
    assert {"no-response-expected", "unanswered"} == set(expected)
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        assert [exchange.findings[0].code for exchange in capture.exchanges()] == expected
