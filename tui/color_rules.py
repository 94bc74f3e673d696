"""Coloring rules: rows that match a filter have its hue, whatever colors the others."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from dissector.exchange.model import Exchange

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
