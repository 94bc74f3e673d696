"""Conversations in which every name is random letters, and these: of all recordings, and of Apache's own messages.

Recordings have what clients send; Apache's messages every field of every API and version.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.records.compress_to_size import compress_to_size
from dissector.protocol.schema.loader import message
from dissector.protocol.tree import Node
from tests.export.redaction.secrets import KEPT
from tests.protocol.vectors import RELEASES, Vector, vectors
from tools.fuzz.case import Side
from tools.fuzz.logins import VERSIONS, Said
from tools.fuzz.seeds import PCAPS, framed

LEAST: Final = 4
LONGEST: Final = 200
"""Bytes of the longest content that becomes letters: long ones are read from hundreds of places for nothing."""
TOGETHER: Final = 400
"""Frames of a conversation: as many of a recording from some row on."""
LETTERS: Final = "bcdfghjklmnpqrstvwxzBCDFGHJKLMNPQRSTVWXZ"
"""None of which four in a row are in a word."""
_VECTORS: Final = "vectors "
Names = tuple[bytes, ...]


@cache
def conversations() -> tuple[str, ...]:
    """The names of all conversations: each recording, and each API of a release with Apache's messages."""
    files = [str(path.relative_to(PCAPS)) for path in sorted(PCAPS.rglob("*.pcap*"))]
    recordings = [name for name in files if not name.endswith(".json")]
    return (*recordings, *(f"{_VECTORS}{release} {key}" for release in RELEASES for key in _messages(release)))


@lru_cache(maxsize=8)
def conversation_of(name: str) -> tuple[list[Said], Names]:
    """The frames of a conversation with letters for names, and these. Some recordings have none: nobody listened."""
    chance = random.Random(name)
    letters = _Letters(chance)
    if name.startswith(_VECTORS):
        release, key = name.removeprefix(_VECTORS).split()
        said = list(_of_vectors(int(key), _messages(release)[int(key)], letters))
    else:
        said = list(_of_recording(PCAPS / name, letters, chance))
    return said or list(VERSIONS), tuple(letters.names.values())


def _of_recording(path: Path, letters: "_Letters", chance: random.Random) -> Iterator[Said]:
    with Capture([str(path)], show_secrets=True) as capture:
        exchanges = list(capture.exchanges())
        first = chance.choice((0, chance.randrange(max(1, len(exchanges) - TOGETHER // 2))))
        for exchange in exchanges[first : first + TOGETHER // 2]:
            key, version = -1 if exchange.api_key is None else exchange.api_key, exchange.fields.version or 0
            for each in (exchange.request, exchange.response):
                if each is not None:
                    yield Said(each is exchange.request, letters.frame(each), key, version)


def _of_vectors(key: int, found: Sequence[Vector], letters: "_Letters") -> Iterator[Said]:
    """Exchanges of Apache's messages: each request with the next response of its version."""
    responses: dict[int, list[Vector]] = {}
    for each in found:
        if each.direction == "response":
            responses.setdefault(each.version, []).append(each)
    requests = [each for each in found if each.direction == "request"]
    for number, request in enumerate(requests, 1):
        answers = responses.get(request.version, ())
        for each in (request, *answers[number % len(answers) :][:1]) if answers else (request,):
            data = _with_number(framed(_side(each), key, each.version, each.data), number, each)
            layout = (request_layout if each is request else response_layout)(key, each.version, data)
            made = letters.frame(ExchangeMessage(0, len(data), data, len(data), layout))
            yield Said(each is request, made, key, each.version)


def _side(vector: Vector) -> Side:
    return "request" if vector.direction == "request" else "response"


def _with_number(data: bytes, number: int, vector: Vector) -> bytes:
    at = 8 if vector.direction == "request" else 4
    return data[:at] + number.to_bytes(4, "big") + data[at + 4 :]


@cache
def _messages(release: str) -> dict[int, list[Vector]]:
    """Apache's requests and responses of a release, by API key."""
    found: dict[int, list[Vector]] = {}
    for each in vectors(release):
        key = message(each.name).api_key
        if key is not None and each.direction in ("request", "response"):
            found.setdefault(key, []).append(each)
    return found


class _Letters:
    """The names of one conversation and what stands for them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.names: dict[bytes, bytes] = {}

    def frame(self, message: ExchangeMessage) -> bytes:
        """The bytes of a frame with letters for its names, where they can be replaced."""
        sources = [bytearray(source.data) for source in message.sources]
        for node in message.tree.walk():
            raw = _name(node)
            if raw is not None and sources[node.source][node.end - len(raw) : node.end] == raw:
                sources[node.source][node.end - len(raw) : node.end] = self._of(raw)
        for source in reversed(message.sources[1:]):
            assert source.compressed is not None
            outer, start, end, codec = source.compressed
            plain = bytes(sources[source.number])
            packed = compress_to_size(codec, plain, bytes(sources[outer][start:end]), [])
            if packed is not None:
                sources[outer][start:end] = packed
        return bytes(sources[0])

    def _of(self, raw: bytes) -> bytes:
        if raw not in self.names:
            self.names[raw] = "".join(self._chance.choices(LETTERS, k=len(raw))).encode()
        return self.names[raw]


def _name(node: Node) -> bytes | None:
    """What a node holds that is somebody's, if it is."""
    if node.children or node.type in ("UUID", "LENGTH", "UNPARSED") or node.name == "(compressed)":
        return None
    raw = node.value.encode("utf-8", "surrogateescape") if isinstance(node.value, str) else node.value
    is_name = isinstance(raw, bytes) and LEAST <= len(raw) <= LONGEST and raw not in KEPT.encode()
    return raw if is_name and isinstance(raw, bytes) else None
