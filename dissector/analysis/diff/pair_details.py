"""Compare single pairs field by field, on demand: of a key's differences, those in these two exchanges."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from dissector.analysis.diff.compared_values import ComparedValue
from dissector.analysis.diff.field_schemas import canonical_path
from dissector.analysis.diff.formatting import describe_key, format_value
from dissector.analysis.diff.key_differences import KeyDifference
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import ElementLabel, LeafPath, message_leaves, path_without_labels
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.node_lookup import find_node
from dissector.analysis.diff.result import (
    ComparedField,
    DiffEntry,
    DifferenceBytes,
    DiffReason,
    ExchangePair,
    FieldDifference,
    PairVerdict,
)
from dissector.analysis.diff.side_profile import SideProfile
from dissector.exchange.model import Exchange

VERSION_AT: Final = 6
"""Where a request has its version: behind its size and the key of its API."""
MessageFields = dict[LeafPath, list[tuple[LeafPath, ComparedValue]]]
"""The fields of one message, by their canonical path: the paths in the message itself, and the values."""


class PairDecoder:
    """Decodes the two exchanges of a pair; keeps none."""

    def __init__(
        self,
        a: SideProfile,
        b: SideProfile,
        names: NameMatching,
        differing_fields: Callable[[MatchingKey], list[KeyDifference]],
    ) -> None:
        self._sides = (a, b)
        self._names = names
        self._differing_fields = differing_fields

    def differences(self, pair: ExchangePair) -> list[FieldDifference]:
        if pair.a is None or pair.b is None:
            return []
        exchanges = [self._exchange(0, pair.a), self._exchange(1, pair.b)]
        out: list[FieldDifference] = []
        found = self._differing_fields(self._key(0, pair.a))
        for part in ("request", "response"):
            fields = [self._fields(side, exchange, part) for side, exchange in enumerate(exchanges)]
            out += [
                each for one in found
                if one.part == part and (each := self._in_pair(one, fields)) is not None
            ]  # fmt: skip
        return out

    def fields(self, pair: ExchangePair) -> list[ComparedField]:
        exchanges = [None if row is None else self._exchange(n, row) for n, row in enumerate((pair.a, pair.b))]
        differences = {(each.part, each.where_a, each.where_b): each for each in self.differences(pair)}
        out: list[ComparedField] = []
        for part in ("request", "response"):
            a, b = ({} if each is None else self._fields(side, each, part) for side, each in enumerate(exchanges))
            for path in dict.fromkeys((*a, *b)):
                where = [side[path][0][0] if path in side else None for side in (a, b)]
                is_equal = {value for _, value in a.get(path, ())} == {value for _, value in b.get(path, ())}
                difference = differences.get((part, where[0], where[1]))
                out.append(ComparedField(part, where[0], where[1], is_equal, difference))
        return out

    def shows(self, pair: ExchangePair, entry: DiffEntry) -> bool:
        rows = (pair.a, pair.b)
        keys = [self._key(side, row) for side, row in enumerate(rows) if row is not None]
        if keys[0].api != entry.api:
            return False
        if entry.path == "version":
            return len(keys) == 2 and len({self._version(side, row) for side, row in enumerate(rows)}) == 2
        if entry.reason is DiffReason.ORDER:
            return pair.verdict is PairVerdict.ORDER
        if entry.reason is DiffReason.ONE_SIDE and not entry.part:
            side, verdict = (1, PairVerdict.ONLY_B) if entry.row_a is None else (0, PairVerdict.ONLY_A)
            other_has_api = any(key.api == entry.api for key in self._sides[1 - side].keys)
            is_whole_api = not other_has_api and not entry.subject
            return pair.verdict is verdict and (is_whole_api or entry.subject == self._described(pair))
        if entry.part and entry.reason not in (DiffReason.BATCHING, DiffReason.CONTENT):
            wanted = (entry.part, entry.path, entry.reason)
            return any((each.part, each.path, each.reason) == wanted for each in self.differences(pair))
        return True  # counts, intervals, batches: all exchanges of the API together

    def field_bytes(self, pair: ExchangePair, entry: DiffEntry) -> list[DifferenceBytes]:
        found: list[DifferenceBytes] = []
        shown = (each for each in self.differences(pair) if (each.part, each.path) == (entry.part, entry.path))
        difference = next(shown, None)
        for side, row in enumerate((pair.a, pair.b)):
            if row is None:
                continue
            exchange, name = self._exchange(side, row), "AB"[side]
            if entry.path == "version" and exchange.request is not None:
                data = exchange.request.data[VERSION_AT : VERSION_AT + 2]
                found.append(DifferenceBytes(name, row, "request", "", f"v{exchange.fields.version}", VERSION_AT, data))
            elif difference is not None:
                found += _bytes_of(name, row, exchange, difference)
        return found

    def _described(self, pair: ExchangePair) -> str:
        """Describe the key of a pair that only one side has."""
        side, row = (0, pair.a) if pair.a is not None else (1, pair.b)
        assert row is not None
        return describe_key(self._sides[side].key(row))

    def _exchange(self, side: int, row: int) -> Exchange:
        return self._sides[side].side.capture.exchange(row)

    def _key(self, side: int, row: int) -> MatchingKey:
        return self._names.key(side, self._sides[side].key(row))

    def _version(self, side: int, row: int | None) -> int | None:
        return None if row is None else self._exchange(side, row).fields.version

    def _fields(self, side: int, exchange: Exchange, part: str) -> MessageFields:
        message = exchange.request if part == "request" else exchange.response
        fields: MessageFields = defaultdict(list)
        if message is not None:
            for path, value in message_leaves(message):
                canonical = canonical_path(f"{exchange.fields.api}{part.capitalize()}", path)
                if canonical is not None and not self._names.is_left_out(side, exchange.fields.api, canonical, value):
                    common = self._names.value_at(side, canonical, value)
                    fields[self._names.path(side, canonical)].append((path, common))
        return fields

    def _in_pair(self, found: KeyDifference, sides: list[MessageFields]) -> FieldDifference | None:
        """Return a key's difference as it is in two messages; None if they do not have it."""
        below = [
            [field for path, fields in side.items() if path[: len(found.path)] == found.path for field in fields]
            for side in sides
        ]
        values = [{value for _, value in side} for side in below]
        if values[0] == values[1]:
            return None
        where = [side[0][0] if side else None for side in below]
        texts = [self._elements(n, side, found.path) for n, side in enumerate(sides)]
        if texts[0] == texts[1]:
            if all(found.path in side for side in sides):
                return None  # the array has the same elements: the difference is inside of them, and reported there
            texts = [", ".join(sorted(self._own(n, side))) for n, side in enumerate(values)]
        return FieldDifference(
            found.part, path_without_labels(found.path), where[0], where[1], texts[0], texts[1], found.reason,
            found.explanation,
        )  # fmt: skip

    def _elements(self, number: int, side: MessageFields, path: LeafPath) -> str:
        """Return what a side has at a path: a value, or the labels of an array's elements."""
        labels = dict.fromkeys(each[len(path)] for each in side if len(each) > len(path) and each[: len(path)] == path)
        elements = [step.value for step in labels if isinstance(step, ElementLabel) and step.value is not None]
        return ", ".join(self._own(number, elements or dict.fromkeys(value for _, value in side.get(path, ()))))

    def _own(self, side: int, values: Iterable[ComparedValue]) -> list[str]:
        """Return values as text, with the names that a side has itself."""
        return [format_value(self._names.own(side, value)) for value in values]


def _bytes_of(name: str, row: int, exchange: Exchange, difference: FieldDifference) -> list[DifferenceBytes]:
    """Return the field of a difference in one exchange; none on a side that does not have it."""
    is_a = name == "A"
    where, path = (difference.where_a, difference.path_a) if is_a else (difference.where_b, difference.path_b)
    message = exchange.request if difference.part == "request" else exchange.response
    if where is None or path is None or message is None:
        return []
    node = find_node(message, where)
    if node is None or node.source:  # what was compressed has no bytes of its own in the frame
        return []
    value = difference.value_a if is_a else difference.value_b
    data = message.data[node.start : node.start + node.size]
    return [DifferenceBytes(name, row, difference.part, path, value, node.start, data)]
