"""What mutation begins with: real frames and packets of `pcaps/`, Apache's own messages of `tests/golden/`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dissector.capture import open_capture
from dissector.capture_session import Capture
from dissector.core.store import Store
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.formats import FORMATS
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.loader import message
from tests.protocol.vectors import RELEASES, Vector, vectors
from tools.fuzz.case import Case, Side

PCAPS: Final = Path(__file__).parents[2] / "pcaps"
LONGEST: Final = 8 << 10
"""Longer seeds are left out: they are slow and say nothing that shorter ones don't."""


@dataclass
class Seeds:
    """All of them, loaded once, before the workers are forked."""

    frames: list[Case] = field(default_factory=list)
    captures: list[list[bytes]] = field(default_factory=list)
    """The packets of each bundled capture, from Ethernet on."""
    files: list[bytes] = field(default_factory=list)
    """The beginnings of their files, as a sniffer wrote them."""
    records: list[bytes] = field(default_factory=list)
    """`records` fields."""
    embedded: list[bytes] = field(default_factory=list)
    """What bytes fields hold that may hold formats."""
    tokens: list[bytes] = field(default_factory=list)
    """Of logins."""

    @cached_property
    def requests(self) -> list[bytes]:
        """Those that are whole: a recording has some that were cut."""
        return [each.data for each in self.frames if each.side == "request" and _is_whole(each.data)]

    @cached_property
    def responses(self) -> list[bytes]:
        return [each.data for each in self.frames if each.side == "response" and _is_whole(each.data)]


def _is_whole(frame: bytes) -> bool:
    return int.from_bytes(frame[:4], "big") == len(frame) - 4


def framed(side: Side, key: int, version: int, body: bytes) -> bytes:
    """A body behind a header of its version."""
    if side == "request":
        header_version = request_header_version(key, version)
        values: dict[str, object] = {"request_api_key": key, "request_api_version": version, "correlation_id": 7}
        values |= {"client_id": "fuzz"} if header_version else {}
        header = write("RequestHeader", header_version, values)
    else:
        header = write("ResponseHeader", response_header_version(key, version), {"correlation_id": 7})
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


def load() -> Seeds:
    """Read them all: some seconds."""
    seeds = Seeds()
    for release in RELEASES:
        for vector in vectors(release):
            _add_vector(seeds, vector)
    for path in sorted(PCAPS.glob("*.pcapng")):
        _add_capture(seeds, path)
    seeds.records += [path.read_bytes()[:LONGEST] for path in sorted(PCAPS.glob("segments/*/*.log"))]
    return seeds


def _add_vector(seeds: Seeds, vector: Vector) -> None:
    key = message(vector.name).api_key
    if vector.direction in ("request", "response") and key is not None and len(vector.data) < LONGEST:
        side: Side = "request" if vector.direction == "request" else "response"
        data = framed(side, key, vector.version, vector.data)
        seeds.frames.append(Case("frame", side, data, key, vector.version))
    elif vector.direction in ("data", "coordinator-value"):
        seeds.embedded.append(vector.version.to_bytes(2, "big") + vector.data)


def _add_capture(seeds: Seeds, path: Path) -> None:
    [batch] = open_capture(str(path), Store()).batches()
    places = zip(batch.offset.tolist(), batch.captured.tolist(), strict=True)
    seeds.files.append(path.read_bytes()[: 2 * LONGEST])
    seeds.captures.append([batch.data[at : at + size].tobytes() for at, size in places])
    with Capture([str(path)], show_secrets=True) as capture:
        for exchange in capture.exchanges():
            _add_exchange(seeds, exchange)


def _add_exchange(seeds: Seeds, exchange: Exchange) -> None:
    sides: tuple[tuple[Side, ExchangeMessage | None], ...] = (
        ("request", exchange.request),
        ("response", exchange.response),
    )
    for side, each in sides:
        if each is None or len(each.data) > LONGEST:
            continue
        if each.layout.token:
            seeds.tokens.append(each.data[4:])
        elif exchange.api_key is not None and exchange.row.version is not None:
            seeds.frames.append(Case("frame", side, each.data, exchange.api_key, exchange.row.version))
            for raw in _bytes_in(each.body):
                if each.layout.body in RECORDS_FIELDS:
                    seeds.records.append(raw)
                elif (each.layout.body or "").startswith("SaslAuthenticate"):
                    seeds.tokens.append(raw)
                elif each.layout.body in FORMATS:
                    seeds.embedded.append(raw)


def _bytes_in(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes) and value:
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _bytes_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _bytes_in(each)
