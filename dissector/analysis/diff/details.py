"""One pair of exchanges, looked at field by field, for who asks: of what differs under their key, what these show."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from dissector.analysis.diff.comparison import Details, Difference, Pair
from dissector.analysis.diff.fields import Found
from dissector.analysis.diff.kinds import Value
from dissector.analysis.diff.leaves import Path, leaves, wildcard
from dissector.analysis.diff.meaning import Key, key_of
from dissector.analysis.diff.moved import moved
from dissector.analysis.diff.names import Names
from dissector.analysis.diff.sides import Side
from dissector.analysis.diff.wording import path_words, word
from dissector.session.exchange import Exchange

Own = dict[Path, list[tuple[Path, Value]]]
"""What one message has, by the path in the comparison: the path that the message has it at, and the value."""


class PairDetails(Details):
    """Decodes the two exchanges of a pair; keeps none."""

    def __init__(
        self, a: Side, b: Side, names: Names, differing: Callable[[Key], list[Found]], matched: Mapping[int, int]
    ) -> None:
        self._captures = (a.capture, b.capture)
        self._names = names
        self._differing = differing
        self._matched = matched

    def differences(self, pair: Pair) -> list[Difference]:
        if pair.a is None or pair.b is None:
            return []
        exchanges = [capture.exchange(row) for capture, row in zip(self._captures, (pair.a, pair.b), strict=True)]
        key, _ = key_of(exchanges[0], self._matched.get(exchanges[0].facts.connection, 0))
        out: list[Difference] = []
        found = self._differing(self._names.key(0, key))
        for part in ("request", "response"):
            own = [self._own(side, exchange, part) for side, exchange in enumerate(exchanges)]
            out += [each for one in found if one.part == part and (each := _shown(one, own)) is not None]
        return out

    def _own(self, side: int, exchange: Exchange, part: str) -> Own:
        message = exchange.request if part == "request" else exchange.response
        found: Own = defaultdict(list)
        if message is not None:
            for path, value in leaves(message):
                place = moved(f"{exchange.facts.api}{part.capitalize()}", path)
                if place is not None:
                    found[self._names.path(side, place)].append((path, self._names.value(side, value)))
        return found


def _shown(found: Found, own: list[Own]) -> Difference | None:
    """What two messages show of a difference; None where they do not."""
    there = [
        [pair for path, pairs in side.items() if path[: len(found.path)] == found.path for pair in pairs]
        for side in own
    ]
    values = [{value for _, value in side} for side in there]
    if values[0] == values[1]:
        return None
    paths = [path_words(side[0][0][: len(side[0][0])]) if side else None for side in there]
    told = [", ".join(sorted(map(word, side))) for side in values]
    return Difference(
        found.part, paths[0], paths[1], told[0], told[1], found.reason, found.words or wildcard(found.path)
    )
