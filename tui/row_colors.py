"""The colors of the list's rows, without a screen: a hue by API, latency or connection, or that of the first coloring
rule (a filter of the user's) that a row matches.

Errors and warnings keep their colors in all modes, so that they are never missed.
"""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Final

from dissector.exchange.model import Exchange, ExchangeRow
from dissector.protocol.schema.api_groups import API_GROUPS, OTHER_GROUP, api_group

HUES: Final = 8
"""Hues of a theme: as many as color-blind people can tell apart."""
_LIMITS: Final = ((1_000_000, "< 1 ms"), (10_000_000, "< 10 ms"), (100_000_000, "< 100 ms"), (1_000_000_000, "< 1 s"))
_HUES_OF_LATENCY: Final = (2, 1, 4, 0, 5)
"""Cold to hot."""
_FAMILIES: Final = (*API_GROUPS, OTHER_GROUP)


class ColorBy(Enum):
    """What colors rows; the value is its name in the configuration."""

    SEVERITY = "severity"
    API = "api"
    LATENCY = "latency"
    CONNECTION = "connection"

    @property
    def next(self) -> "ColorBy":
        """The next one, cyclically."""
        ways = list(ColorBy)
        return ways[(ways.index(self) + 1) % len(ways)]

    def hue(self, row: ExchangeRow, api_key: int | None) -> int | None:
        """Return a row's hue, from 0; None for the default color."""
        if self is ColorBy.CONNECTION:
            return (row.connection - 1) % HUES
        if self is ColorBy.API and api_key is not None:
            return _FAMILIES.index(api_group(api_key))
        if self is ColorBy.LATENCY and row.latency_ns is not None:
            latency = row.latency_ns
            return _HUES_OF_LATENCY[next((n for n, (limit, _) in enumerate(_LIMITS) if latency < limit), len(_LIMITS))]
        return None

    def legend(self) -> list[tuple[str, int | None]]:
        """Return each word of the legend with its hue; empty if the marks beside the rows say it all."""
        if self is ColorBy.API:
            return [(name, hue) for hue, name in enumerate(_FAMILIES)]
        if self is ColorBy.LATENCY:
            words = [*(words for _, words in _LIMITS), "1 s or more"]
            return [*zip(words, _HUES_OF_LATENCY, strict=True), ("no response", None)]
        if self is ColorBy.CONNECTION:
            return [(f"C{n + 1}" + (f", C{n + 1 + HUES}, …" if n == 0 else ""), n) for n in range(HUES)]
        return []


if TYPE_CHECKING:  # the engine takes a tenth of a second to import: only for those who have rules
    from dissector.filter import Filter


def rule_hue(rules: Mapping[str, int], exchange: Exchange, start_ns: int) -> int | None:
    """Return the hue, from 0, of the first rule that an exchange of a capture that began at `start_ns` matches."""
    for text, hue in rules.items():
        wanted = _parsed(text)
        if wanted is not None and wanted.matches(exchange, start_ns):
            return hue - 1
    return None


@cache
def _parsed(text: str) -> "Filter | None":
    """Return a filter; None for an invalid one, which `config.toml` may have."""
    from dissector.filter import FilterError, parse

    try:
        return parse(text)
    except FilterError:
        return None
