"""Masks the secrets of many messages of one layout at once, as `masking.mask_secrets` does one at a time.

The kernel finds the secret fields. Which of them may be shown (a config that is no secret) is decided by a few fields
beside them; messages that are equal in these are decided once.

Invariants:
  * what comes out are frames as `mask_secrets` gives them: those that it may mask whole, because they don't fit their
    layout or something in them is not clean, are left out;
  * APIs with secrets inside bytes fields or records are left out (`has_plain_secrets`).
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from dissector.core import limits
from dissector.core.arrays import Bool, Int64
from dissector.core.grouping import begins, expanded
from dissector.protocol.codec.program import ColumnPlan, Part, Program, Wanted
from dissector.protocol.embedded.formats import FORMATS
from dissector.protocol.embedded.secrets import (
    DECIDING,
    METADATA_CARRIERS,
    SECRET_CARRIERS,
    SECRET_FIELDS,
    is_secret,
)
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import Arena, ColumnValues, FrameMemory, Shredded
from dissector.protocol.message import AUTH_BYTES, read
from dissector.protocol.message_layout import PREFIX, MessageLayout
from dissector.protocol.records.batch import MASK

MOST_DECISIONS: Final = 1 << 12
MOST_KEY_BYTES: Final = 1 << 24
LARGEST: Final = limits.DEFAULT.tree_nodes // 4
"""Bytes of a frame that surely has no more fields than a tree may have."""
_NO_ROWS: Final = np.zeros(0, np.int64)
_SEPARATORS: Final = (0, 1)
_IS_DOUBTFUL: Final = np.array([not (0x20 <= byte <= 0x7E or byte in _SEPARATORS) for byte in range(256)])
Decision = tuple[Bool, ...]
"""By secret text: which of the values that a message has there are secrets."""


class MaskedFrames(NamedTuple):
    """Frames without their secrets."""

    at: Int64
    """Their places among those that were asked for, ascending."""
    frames: FrameMemory


class _SecretColumns(NamedTuple):
    """What is wanted of the messages of a program."""

    program: Program
    wanted: Wanted
    texts: tuple[tuple[int, tuple[str, ...]], ...]
    """Columns of secrets that may be shown if they are none, with their paths in the body."""
    always: tuple[int, ...]
    """Columns of secrets that never are."""


def has_plain_secrets(layout: MessageLayout) -> bool:
    """Whether all secrets of a message are fields of its own."""
    body = layout.body
    is_known = layout.unread is None and not layout.token
    return is_known and body in SECRET_FIELDS and body not in (SECRET_CARRIERS | METADATA_CARRIERS | FORMATS.keys())


def are_clean(part: Shredded, frames: FrameMemory) -> Bool:
    """Which messages of a part, of which all fields were checked, are surely not masked whole, `(n,)`, if no bytes in
    them hold messages or records."""
    found: Bool = (part.errors == 0) & (part.unclean == 0) & (frames.sizes[part.first : part.stop] <= LARGEST)
    return found


class BulkMasking:
    """Of one capture."""

    def __init__(self) -> None:
        self._arena = Arena()
        self._plans: dict[int, _SecretColumns] = {}
        """By the id of a program."""
        self._decisions: dict[tuple[int, bytes], Decision] = {}
        """By program and key."""
        self._key_bytes = 0

    def masked(self, frames: FrameMemory, layout: MessageLayout, program: Program) -> MaskedFrames:
        """Return frames of a layout, whole ones, without their secrets."""
        plan = self._plans.get(id(program)) or _plan(program, layout.body or "")
        self._plans[id(program)] = plan
        spans = _Spans()
        fits = [_NO_ROWS]
        for part in self._arena.shred(frames, program, plan.wanted, PREFIX):
            is_clean = are_clean(part, frames)
            fits.append(part.first + np.flatnonzero(is_clean))
            decisions = self._decided(part, frames, layout, plan, np.flatnonzero(is_clean)) if plan.texts else []
            for which, (column, _) in enumerate(plan.texts):
                is_secret = np.concatenate([np.zeros(0, np.bool_), *(each[which] for each in decisions)])
                spans.add(part, _of_rows(part.column(column), is_clean), is_secret)
            for column in plan.always:
                spans.add(part, _of_rows(part.column(column), is_clean))
        at = np.concatenate(fits)
        return MaskedFrames(at, spans.masked(frames, at))

    def _decided(
        self, part: Shredded, frames: FrameMemory, layout: MessageLayout, plan: _SecretColumns, rows: Int64
    ) -> list[Decision]:
        """The decisions for some rows of a part."""
        keyed = part.key_numbers()
        numbers = keyed.numbers[rows].tolist()
        found: dict[int, Decision] = {}
        for row, number in zip(rows.tolist(), numbers, strict=True):
            if number not in found:
                key = id(plan.program), keyed.keys[number]
                decision = self._decisions.get(key)
                if decision is None:
                    decision = _decision(frames.data(part.first + row), layout, plan)
                    self._keep(key, decision)
                found[number] = decision
        return [found[number] for number in numbers]

    def _keep(self, key: tuple[int, bytes], decision: Decision) -> None:
        self._key_bytes += len(key[1])
        if len(self._decisions) >= MOST_DECISIONS or self._key_bytes > MOST_KEY_BYTES:
            self._decisions.clear()
            self._key_bytes = len(key[1])
        self._decisions[key] = decision


def _plan(program: Program, body: str) -> _SecretColumns:
    """What is wanted of a program: the places of secrets, and a key of what decides about them."""
    paths = [("body", *path.split(".")) for path in SECRET_FIELDS[body]]
    secrets = [(number, column) for number, column in program.values if column.path in paths]
    texts = [(number, column.path) for number, column in secrets if column.type == "string"]
    keys = [
        number for number, column in program.values
        if any(_decides(column, path) for _, path in texts)
    ]  # fmt: skip
    wanted = program.wanted(values=[number for number, _ in secrets], keys=keys, checked=True)
    always = tuple(number for number, column in secrets if column.type != "string")
    return _SecretColumns(program, wanted, tuple((number, path[1:]) for number, path in texts), always)


def _decides(column: ColumnPlan, secret: tuple[str, ...]) -> bool:
    """Whether a column is a secret text, or one of those around it that say whether it is one."""
    is_around = column.path[:-1] == secret[: len(column.path) - 1]
    return column.path == secret or (is_around and column.name in DECIDING)


def _decision(data: bytes, layout: MessageLayout, plan: _SecretColumns) -> Decision:
    """Decide about a message that the kernel has read to its end."""
    body = read(data, layout).body
    return tuple(
        np.array([is_secret(path[-1], each[-1][path[-1]], each) for each in _structures(path, (body,))], np.bool_)
        for _, path in plan.texts
    )


def _structures(
    path: tuple[str, ...], around: tuple[Mapping[str, object], ...]
) -> Iterator[tuple[Mapping[str, object], ...]]:
    """Yield the structures around each field at a path, in the order of the wire."""
    if len(path) == 1:
        yield around
        return
    elements = around[-1][path[0]]
    for each in elements if isinstance(elements, list) else ():
        yield from _structures(path[1:], (*around, each))


def _of_rows(column: ColumnValues, rows: Bool) -> ColumnValues:
    """The values of some rows, given by row."""
    some = rows[column.rows]
    return ColumnValues(column.values[some], column.positions[some], column.rows[some])


class _Spans:
    """The secrets of frames."""

    def __init__(self) -> None:
        self._rows, self._positions, self._sizes = [_NO_ROWS], [_NO_ROWS], [_NO_ROWS]

    def add(self, part: Shredded, column: ColumnValues, is_secret: Bool | None = None) -> None:
        """Add the values of a column, or those that are secret."""
        there = column.values > 0
        some = there if is_secret is None else there & is_secret
        self._rows.append(part.first + column.rows[some].astype(np.int64))
        self._positions.append(column.positions[some])
        self._sizes.append(column.values[some])

    def masked(self, frames: FrameMemory, at: Int64) -> FrameMemory:
        """Return the frames at some places, in copies with their secrets masked where they have any."""
        rows, lengths = np.concatenate(self._rows), np.concatenate(self._sizes)
        some = frames.at(at)
        copied = np.flatnonzero(np.isin(at, rows))
        if not len(copied):
            return some
        sizes = some.sizes[copied]
        memory, starts = join(some.addresses[copied], sizes), begins(sizes)
        first = starts[np.searchsorted(at[copied], rows)] + np.concatenate(self._positions)
        memory[expanded(first, lengths)] = MASK[0]
        addresses = some.addresses.copy()
        addresses[copied] = memory.ctypes.data + starts
        return FrameMemory(addresses, some.sizes, (frames.owner, memory))


class CleanTokens:
    """Finds the messages of SaslAuthenticate that have nothing doubtful in their token: `mask_secrets` masks secrets in
    them, and none of them as a whole. It keeps its buffers for the next ones.

    Invariant: whatever the mechanism is, all parts of the token are masked or clean (a property test). A token that is
    not of its mechanism is masked by itself, and of one that is only texts without control characters are shown, or
    such between the separators of PLAIN (RFC 4616) and OAUTHBEARER (RFC 7628)."""

    def __init__(self) -> None:
        self._arena = Arena()

    def of(self, frames: FrameMemory, program: Program) -> Bool:
        """Which of some whole messages of one layout surely are not masked as a whole, `(n,)`."""
        found = np.zeros(len(frames), np.bool_)
        [tokens] = [
            number for number, column in enumerate(program.columns)
            if column.part is Part.VALUE and column.name == AUTH_BYTES
        ]  # fmt: skip
        for part in self._arena.shred(frames, program, program.wanted(values=[tokens], checked=True), PREFIX):
            found[part.first : part.stop] = are_clean(part, frames) & ~_are_doubtful(part, frames, tokens)
        return found


def _are_doubtful(part: Shredded, frames: FrameMemory, tokens: int) -> Bool:
    """Which messages of a part have other bytes in their token than those of text and separators, `(n,)`."""
    found = np.zeros(part.stop - part.first, np.bool_)
    sizes, positions, rows = part.column(tokens)
    some = np.flatnonzero(sizes > 0)
    sizes, positions, rows = sizes[some], positions[some], rows[some].astype(np.int64)
    if len(some):
        data = join(frames.addresses[part.first + rows] + positions.astype(np.uint64), sizes)
        found[rows[np.add.reduceat(_IS_DOUBTFUL[data], np.cumsum(sizes) - sizes, dtype=np.int64) > 0]] = True
    return found
