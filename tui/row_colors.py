"""What the colours of the list tell, without a screen: each row has a hue by its API, its latency or its connection.

Errors and warnings keep their own colours whatever else is told: who looks for them finds them.
"""

from enum import Enum
from typing import Final

from dissector.exchange.model import ExchangeRow
from dissector.protocol.schema.api_groups import API_GROUPS, OTHER_GROUP, api_group

HUES: Final = 8
"""Colours that a theme has for this; as many as the colour-blind can tell apart."""
_LIMITS: Final = ((1_000_000, "< 1 ms"), (10_000_000, "< 10 ms"), (100_000_000, "< 100 ms"), (1_000_000_000, "< 1 s"))
_HUES_OF_LATENCY: Final = (2, 1, 4, 0, 5)
"""Cold to hot."""
_FAMILIES: Final = (*API_GROUPS, OTHER_GROUP)


class ColorBy(Enum):
    """What colours tell; the value is what the configuration calls it."""

    SEVERITY = "severity"
    API = "api"
    LATENCY = "latency"
    CONNECTION = "connection"

    @property
    def next(self) -> "ColorBy":
        """The one after it, round and round."""
        ways = list(ColorBy)
        return ways[(ways.index(self) + 1) % len(ways)]

    def hue(self, row: ExchangeRow, api_key: int | None) -> int | None:
        """A row's hue, from 0; None for the usual colour."""
        if self is ColorBy.CONNECTION:
            return (row.connection - 1) % HUES
        if self is ColorBy.API and api_key is not None:
            return _FAMILIES.index(api_group(api_key))
        if self is ColorBy.LATENCY and row.latency_ns is not None:
            latency = row.latency_ns
            return _HUES_OF_LATENCY[next((n for n, (limit, _) in enumerate(_LIMITS) if latency < limit), len(_LIMITS))]
        return None

    def legend(self) -> list[tuple[str, int | None]]:
        """Each word of the legend with its hue; empty where the marks beside the rows say it all."""
        if self is ColorBy.API:
            return [(name, hue) for hue, name in enumerate(_FAMILIES)]
        if self is ColorBy.LATENCY:
            words = [*(words for _, words in _LIMITS), "1 s and more"]
            return [*zip(words, _HUES_OF_LATENCY, strict=True), ("no answer", None)]
        if self is ColorBy.CONNECTION:
            return [(f"C{n + 1}" + (f", C{n + 1 + HUES}, …" if n == 0 else ""), n) for n in range(HUES)]
        return []
