"""What exchanges of ApiVersions say of a connection: the versions that the broker accepts, the software of the client.

Invariant: equal messages are decoded once, and connections share the values that they name.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int32, Int64
from dissector.core.columns import ValueColumn, tuples
from dissector.index.exchange_table import ExchangeTable
from dissector.index.frame_table import NO_NUMBER, FrameTable, equal_numbers
from dissector.index.shared_state import NO_VERSIONS, VersionRanges
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.masked_reasons import UNREAD
from dissector.protocol.masking import is_sound
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import REQUEST_ID, RESPONSE_ID, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey

CACHE_SIZE: Final = 256
"""Different bodies of responses that are decoded once, and as many different requests."""
NO_SOFTWARE: Final = ("", "")


class VersionExchanges:
    """Grows as the capture is read."""

    def __init__(self, frames: FrameTable, table: ExchangeTable) -> None:
        self._frames = frames
        self._table = table
        self._advertised: ValueColumn[VersionRanges] = ValueColumn()
        """By connection."""
        self._newly_advertised: dict[int, None] = {}
        """Connections whose versions were learned since `take_advertised`, in order."""
        self._software: ValueColumn[tuple[str, str]] = ValueColumn()
        """By connection."""
        self._decoded_versions = lru_cache(maxsize=CACHE_SIZE)(_decoded_versions)
        self._decoded_software = lru_cache(maxsize=CACHE_SIZE)(_decoded_software)

    def advertised(self, connection: int) -> VersionRanges:
        """The versions in the ApiVersions response on a connection, by API key; empty where there is none."""
        return self._advertised.get(connection) or NO_VERSIONS

    def take_advertised(self) -> dict[int, VersionRanges]:
        """The same by connection, of those of which they were learned since the last call."""
        taken, self._newly_advertised = self._newly_advertised, {}
        return {connection: versions for connection in taken if (versions := self._advertised.get(connection))}

    def software(self, connection: int) -> tuple[str, str]:
        """Name and version of the client's software, from its ApiVersions request (KIP-511); else empty."""
        return self._software.get(connection) or NO_SOFTWARE

    def retain(self, connections: set[int]) -> None:
        """Forget other connections."""
        kept = np.array(sorted(connections), np.int64)
        self._advertised.keep(kept)
        self._software.keep(kept)

    def learn(self, rows: Int64) -> None:
        """Learn from rows of ApiVersions that have both messages."""
        if not len(rows):
            return
        table, frames = self._table, self._frames
        version, connection = table.version.values[rows].astype(np.int64), table.connection.values[rows]
        requests, responses = table.request.values[rows], table.response.values[rows]
        asked = _of_each_kind(version, equal_numbers(frames, requests, REQUEST_ID.stop))
        answered = _of_each_kind(version, equal_numbers(frames, responses, RESPONSE_ID.stop))
        software = [self._software_in(*each) for each in tuples(version[asked.first], requests[asked.first])]
        versions = [self._versions_in(*each) for each in tuples(version[answered.first], responses[answered.first])]
        self._software.set(connection, np.array(software, np.int32)[asked.which])
        advertised = np.array(versions, np.int32)[answered.which]
        self._advertised.set(connection, advertised)
        self._newly_advertised.update(dict.fromkeys(connection[advertised > 0].tolist()))

    def _versions_in(self, version: int, response: int) -> int:
        """The number of the versions in a response, 0 of none."""
        data, whole = self._frames.read(response)
        versions = self._decoded_versions(version, data[RESPONSE_ID.stop : whole])
        return self._advertised.number(versions, frozenset(versions.items())) if versions else 0

    def _software_in(self, version: int, request: int) -> int:
        """The number of the software in a request, 0 of none."""
        data, whole = self._frames.read(request)
        software = self._decoded_software(version, data[: REQUEST_ID.start], data[REQUEST_ID.stop : whole])
        return self._software.number(software, software) if software[0] else 0


class _Kinds(NamedTuple):
    """Messages by their version and what they say."""

    which: Int32
    """The number of the kind of each, `(n,)`."""
    first: Int32
    """The first message of each number."""


def _of_each_kind(version: Int64, numbers: Int64) -> _Kinds:
    """The kinds of messages; one without a number is alone."""
    alone = np.where(numbers == NO_NUMBER, np.arange(len(numbers)), NO_NUMBER)
    return _Kinds(*numbered_rows(version, numbers, alone))


def _decoded_versions(version: int, body: bytes) -> VersionRanges:
    """The versions in the body of an ApiVersions response to a request of that version."""
    data = bytes(RESPONSE_ID.stop) + body
    return dict(version_ranges(read(data, response_layout(ApiKey.API_VERSIONS, version, data)).body))


def _decoded_software(version: int, before: bytes, after: bytes) -> tuple[str, str]:
    """The software that an ApiVersions request names; the request comes without its correlation id. One that is not
    understood is masked where it is shown, as it may be of a login: it names none."""
    request = read(before + bytes(4) + after, request_layout(ApiKey.API_VERSIONS, version))
    if not is_sound(request.header) or request.rest or UNREAD & {each.code for each in request.findings}:
        return NO_SOFTWARE
    body = request.body
    name, number = body.get("client_software_name"), body.get("client_software_version")
    return (name, number) if isinstance(name, str) and isinstance(number, str) else NO_SOFTWARE


def version_ranges(response: Values) -> Iterator[tuple[int, tuple[int, int]]]:
    """The versions in an ApiVersions response, by API key; none of an error response, which may name only some."""
    keys = None if response.get("error_code") else response.get("api_keys")
    for each in keys if isinstance(keys, list) else ():
        yield each["api_key"], (each["min_version"], each["max_version"])
