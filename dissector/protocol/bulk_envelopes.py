"""Which Envelope messages, a broker's forwarded requests (KIP-590) and the responses to them, have nothing doubtful in
what they carry, of many at once: `masking.mask_secrets` masks secrets in them, and none of them as a whole.

Invariant: of a message that is found to be so, tracing opens all that it carries, and finds all of it clean (a property
test). What is rare is not found to be so: APIs whose bytes hold other messages or records.
"""

from functools import cache, lru_cache
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import unique
from dissector.protocol.bulk_masking import are_clean
from dissector.protocol.codec.program import Part, Program, message_program
from dissector.protocol.embedded.formats import FORMATS
from dissector.protocol.embedded.messages import embedded_plan, newest_version
from dissector.protocol.embedded.secrets import SECRET_CARRIERS
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import Arena, FrameMemory, Shredded
from dissector.protocol.message_layout import PREFIX
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.loader import alternatives, api

NO_API: Final = -1
_KIND_SIZE: Final = 4
"""Bytes of API key and version at the beginning of a request."""
_REQUEST, _RESPONSE, _PRINCIPAL = "request_data", "response_data", "request_principal"
_PRINCIPAL_DATA: Final = "DefaultPrincipalData"
_VERSION_SIZE: Final = 2


class CleanEnvelopes:
    """Finds them; it keeps its buffers for the next ones. A kind is an API key, above a version in 16 bits."""

    def __init__(self) -> None:
        self._arena = Arena()
        self._carried = Arena()

    def kinds(self, frames: FrameMemory, program: Program) -> Int64:
        """The kinds of the requests that some whole requests of one layout carry, `(n,)`; `NO_API` where there is
        none."""
        found = np.full(len(frames), NO_API, np.int64)
        column = _column(program, _REQUEST)
        for part in self._arena.shred(frames, program, program.wanted(values=[column]), PREFIX):
            rows, carried = _carried(part, frames, column)
            long = np.flatnonzero(carried.sizes >= _KIND_SIZE)
            found[rows[long]] = _numbers(carried.at(long), _KIND_SIZE)
        return found

    def requests(self, frames: FrameMemory, program: Program) -> Bool:
        """Which of some whole requests of one layout surely are not masked as a whole, `(n,)`."""
        kinds = self.kinds(frames, program)
        found = self._are_clean(frames, program, _REQUEST, kinds, is_request=True)
        return found & self._have_clean_principals(frames, program)

    def responses(self, frames: FrameMemory, program: Program, kinds: Int64) -> Bool:
        """The same of responses, with the kinds of the requests that theirs carry."""
        return self._are_clean(frames, program, _RESPONSE, kinds, is_request=False)

    def _are_clean(self, frames: FrameMemory, program: Program, field: str, kinds: Int64, *, is_request: bool) -> Bool:
        """Which messages are clean, and so is what they carry, of its kind."""
        found = np.zeros(len(frames), np.bool_)
        column = _column(program, field)
        for part in self._arena.shred(frames, program, program.wanted(values=[column], checked=True), PREFIX):
            found[part.first : part.stop] = are_clean(part, frames)
            rows, carried = _carried(part, frames, column)
            for kind in unique(kinds[rows]).tolist():
                some = np.flatnonzero(kinds[rows] == kind)
                inner = _program(kind, is_request=is_request)
                found[rows[some]] &= inner is not None and self._fit(carried.at(some), inner, 0)
        return found

    def _have_clean_principals(self, frames: FrameMemory, program: Program) -> Bool:
        """Which requests have a principal as brokers write it, or none."""
        found = np.ones(len(frames), np.bool_)
        column = _column(program, _PRINCIPAL)
        for part in self._arena.shred(frames, program, program.wanted(values=[column]), PREFIX):
            rows, carried = _carried(part, frames, column)
            long = carried.sizes >= _VERSION_SIZE
            found[rows[~long]] = False
            rows, carried = rows[long], carried.at(np.flatnonzero(long))
            versions = _numbers(carried, _VERSION_SIZE)
            for version in unique(versions).tolist():
                some = np.flatnonzero(versions == version)
                inner = _principal(version)
                found[rows[some]] = inner is not None and self._fit(carried.at(some), inner, _VERSION_SIZE)
        return found

    def _fit(self, carried: FrameMemory, program: Program, begin: int) -> Bool:
        """Which messages the kernel reads to their end, and finds clean."""
        found = np.zeros(len(carried), np.bool_)
        for part in self._carried.shred(carried, program, program.wanted(checked=True), begin):
            found[part.first : part.stop] = (part.errors == 0) & (part.unclean == 0)
        return found


def _carried(part: Shredded, frames: FrameMemory, column: int) -> tuple[Int64, FrameMemory]:
    """What messages of a part carry in a column, where it is not empty, and their numbers."""
    sizes, positions, rows = part.column(column)
    some = np.flatnonzero(sizes > 0)
    of = part.first + rows[some].astype(np.int64)
    return of, FrameMemory(frames.addresses[of] + positions[some].astype(np.uint64), sizes[some], frames.owner)


def _numbers(carried: FrameMemory, size: int) -> Int64:
    """The number of so many bytes at the beginning of each, `(n,)`."""
    data = join(carried.addresses, np.full(len(carried), size)).reshape(-1, size).astype(np.int64)
    found: Int64 = data @ (1 << 8 * np.arange(size - 1, -1, -1))
    return found


@lru_cache(maxsize=64)
def _column(program: Program, name: str) -> int:
    [found] = [n for n, column in enumerate(program.columns) if column.part is Part.VALUE and column.name == name]
    return found


@lru_cache(maxsize=256)
def _program(kind: int, *, is_request: bool) -> Program | None:
    """How to look at messages of a kind; None where they may hold other messages, or are not known."""
    key, version = kind >> 16, kind & 0xFFFF
    known = api(key)
    if known is None or key == ApiKey.ENVELOPE or not known.versions.contains(version):
        return None
    body = known.request if is_request else known.response
    if body in FORMATS or body in SECRET_CARRIERS or body in RECORDS_FIELDS or alternatives(body, version):
        return None
    if is_request:
        return message_program("RequestHeader", request_header_version(key, version), body, version)
    return message_program("ResponseHeader", response_header_version(key, version), body, version)


@cache
def _principal(version: int) -> Program | None:
    is_known = version <= newest_version(_PRINCIPAL_DATA)
    return Program((("body", embedded_plan(_PRINCIPAL_DATA, version)),)) if is_known else None
