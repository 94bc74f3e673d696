"""No message stops the rules: all values that Apache's codec writes, and bytes of any kind."""

import random
import struct
from collections import defaultdict
from pathlib import Path

import pytest

from dissector.protocol.schema.loader import apis
from tests.analysis.conformance.making import checked
from tests.conftest import some_of
from tests.protocol.vectors import RELEASES, Vector, vectors
from tests.traffic import Turn, capture_of, conversation

pytestmark = pytest.mark.slow
EACH = 6
"""Pairs of an API and a version."""


def pairs(release: str) -> list[Turn]:
    """Requests and responses of all APIs and versions, with values at their limits and null where they may be."""
    messages: dict[tuple[str, int], list[Vector]] = defaultdict(list)
    for each in vectors(release):
        if each.header is not None:
            messages[each.name, each.version].append(each)
    turns = []
    number = 0
    for api in apis():
        for version in range(api.versions.low, api.versions.high + 1):
            requests, responses = messages[api.request, version], messages[api.response, version]
            chance = random.Random(version)
            for _ in range(EACH if requests and responses else 0):
                number += 1
                asked, told = chance.choice(requests), chance.choice(responses)
                client_id = b"\0\1m" + b"\0" * (asked.header == 2) if asked.header else b""
                head = struct.pack(">hhi", api.key, version, number) + client_id
                answer = struct.pack(">i", number) + b"\0" * (told.header == 1)
                turns += [Turn(True, sized(head + asked.data)), Turn(False, sized(answer + told.data))]
    return turns


def sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


@pytest.mark.long
@pytest.mark.parametrize("release", some_of(RELEASES, RELEASES[-1]))
def test_all_values_that_a_schema_allows(release: str, tmp_path: Path) -> None:
    turns = pairs(release)
    result = checked(capture_of(tmp_path, conversation(turns)))
    assert len(turns) > 2_000
    assert result.exchanges == len(turns) // 2
    assert sum(result.kept.values()) > len(turns)


@pytest.mark.long
@pytest.mark.parametrize("seed", some_of(range(3), 0))
def test_damaged_messages(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    turns = pairs(RELEASES[-1])
    for n in chance.choices(range(len(turns)), k=len(turns)):
        data = bytearray(turns[n].data)
        if len(data) > 20:
            data[chance.randrange(14, len(data))] = chance.randrange(256)
            turns[n] = Turn(turns[n].from_client, bytes(data))
    result = checked(capture_of(tmp_path, conversation(turns)))
    assert result.broken


def test_unreadable_requests_between_responses_that_ask_for_more(tmp_path: Path) -> None:
    """A response says that a member id is required; what should have it can't be read."""
    required = struct.pack(">ihi", 0, 79, -1) + b"\0\0" * 2 + b"\0\1m" + b"\0" * 4
    turns = []
    for number in (1, 2):
        turns.append(Turn(True, sized(struct.pack(">hhi", 11, 4, number) + b"\0\1m" + b"\xff\xff")))
        turns.append(Turn(False, sized(struct.pack(">i", number) + required)))
    result = checked(capture_of(tmp_path, conversation(turns)))
    assert {code: count for (code, _), count in result.broken.items()} == {"request-malformed": 2}
