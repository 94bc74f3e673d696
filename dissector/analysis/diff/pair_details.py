"""One pair of exchanges, looked at field by field, for who asks: of what differs under their key, what these show."""

from collections import defaultdict
from collections.abc import Callable

from dissector.analysis.diff.compared_values import ComparedValue
from dissector.analysis.diff.field_comparison import KeyDifference
from dissector.analysis.diff.formatting import describe_key, format_value
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import ElementLabel, LeafPath, message_leaves, path_without_labels
from dissector.analysis.diff.moved_fields import canonical_path
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.result import (
    ComparedField,
    DiffEntry,
    DiffReason,
    ExchangePair,
    FieldDifference,
    PairVerdict,
)
from dissector.analysis.diff.side_profile import SideProfile
from dissector.exchange.model import Exchange

Own = dict[LeafPath, list[tuple[LeafPath, ComparedValue]]]
"""What one message has, by the path in the comparison: the path that the message has it at, and the value."""


class PairDecoder:
    """Decodes the two exchanges of a pair; keeps none."""

    def __init__(
        self,
        a: SideProfile,
        b: SideProfile,
        names: NameMatching,
        differing: Callable[[MatchingKey], list[KeyDifference]],
    ) -> None:
        self._sides = (a, b)
        self._names = names
        self._differing = differing

    def differences(self, pair: ExchangePair) -> list[FieldDifference]:
        if pair.a is None or pair.b is None:
            return []
        exchanges = [self._exchange(0, pair.a), self._exchange(1, pair.b)]
        out: list[FieldDifference] = []
        found = self._differing(self._key(0, pair.a))
        for part in ("request", "response"):
            own = [self._own(side, exchange, part) for side, exchange in enumerate(exchanges)]
            out += [each for one in found if one.part == part and (each := _shown(one, own)) is not None]
        return out

    def fields(self, pair: ExchangePair) -> list[ComparedField]:
        exchanges = [None if row is None else self._exchange(n, row) for n, row in enumerate((pair.a, pair.b))]
        told = {(each.part, each.where_a, each.where_b): each for each in self.differences(pair)}
        out: list[ComparedField] = []
        for part in ("request", "response"):
            a, b = ({} if each is None else self._own(side, each, part) for side, each in enumerate(exchanges))
            for path in dict.fromkeys((*a, *b)):
                where = [side[path][0][0] if path in side else None for side in (a, b)]
                alike = {value for _, value in a.get(path, ())} == {value for _, value in b.get(path, ())}
                out.append(ComparedField(part, where[0], where[1], alike, told.get((part, where[0], where[1]))))
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
        if entry.reason is DiffReason.ONLY_HERE and not entry.part:
            side, alone = (1, PairVerdict.ONLY_B) if entry.row_a is None else (0, PairVerdict.ONLY_A)
            other_speaks = any(key.api == entry.api for key in self._sides[1 - side].facts)
            of_all = not other_speaks and not entry.words
            return pair.verdict is alone and (of_all or entry.words.startswith(describe_key(keys[0])))
        if entry.part and entry.reason not in (DiffReason.BATCHING, DiffReason.CONTENT):
            wanted = (entry.part, entry.path, entry.reason)
            return any((each.part, each.path, each.reason) == wanted for each in self.differences(pair))
        return True  # how often, how far apart, how packed: all of them together

    def _exchange(self, side: int, row: int) -> Exchange:
        return self._sides[side].side.capture.exchange(row)

    def _key(self, side: int, row: int) -> MatchingKey:
        return self._names.key(side, self._sides[side].key(row))

    def _version(self, side: int, row: int | None) -> int | None:
        return None if row is None else self._exchange(side, row).facts.version

    def _own(self, side: int, exchange: Exchange, part: str) -> Own:
        message = exchange.request if part == "request" else exchange.response
        found: Own = defaultdict(list)
        if message is not None:
            for path, value in message_leaves(message):
                place = canonical_path(f"{exchange.facts.api}{part.capitalize()}", path)
                if place is not None:
                    found[self._names.path(side, place)].append((path, self._names.value(side, value)))
        return found


def _shown(found: KeyDifference, own: list[Own]) -> FieldDifference | None:
    """What two messages show of a difference; None where they do not."""
    there = [
        [pair for path, pairs in side.items() if path[: len(found.path)] == found.path for pair in pairs]
        for side in own
    ]
    values = [{value for _, value in side} for side in there]
    if values[0] == values[1]:
        return None
    where = [side[0][0] if side else None for side in there]
    told = [_elements(side, found.path) for side in own]
    if told[0] == told[1]:
        if all(found.path in side for side in own):
            return None  # the array has the same elements: what differs in them is told where it stands
        told = [", ".join(sorted(map(format_value, side))) for side in values]
    return FieldDifference(
        found.part, path_without_labels(found.path), where[0], where[1], told[0], told[1], found.reason, found.words
    )


def _elements(side: Own, path: LeafPath) -> str:
    """What a side has at a path: a value, or the elements of an array by what tells them apart."""
    labels = dict.fromkeys(own[len(path)] for own in side if len(own) > len(path) and own[: len(path)] == path)
    elements = [step.value for step in labels if isinstance(step, ElementLabel) and step.value is not None]
    return ", ".join(map(format_value, elements or dict.fromkeys(value for _, value in side.get(path, ()))))
