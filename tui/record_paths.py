"""Names inside the records that are shown, to be offered while a filter is typed."""

from collections.abc import Iterable, Iterator
from typing import Final

from dissector.records.record import ExchangeRecord

MOST: Final = 200
DEEPEST: Final = 6
_ELEMENTS: Final = 3
"""Elements of an array that are looked at."""


def paths_in(records: Iterable[ExchangeRecord | None]) -> list[str]:
    """Return paths such as ``value.order.id`` and ``headers.tenant``, each once."""
    found: dict[str, None] = {}
    for record in records:
        if record is None:
            continue
        for path in _paths(record):
            if len(found) >= MOST:
                return list(found)
            found[path] = None
    return list(found)


def _paths(record: ExchangeRecord) -> Iterator[str]:
    for name, opened in (("value", record.opened_value), ("key", record.opened_key)):
        yield from _inside(opened.inner, name, 0)
    for name, _ in record.headers:
        if name.isprintable() and " " not in name:
            yield f"headers.{name}"


def _inside(value: object, path: str, depth: int) -> Iterator[str]:
    if depth < DEEPEST and isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(name, str) and name.isprintable() and not set(name) & set(" (){},&|!<>=\"'"):
                yield f"{path}.{name}"
                yield from _inside(inner, f"{path}.{name}", depth + 1)
    elif depth < DEEPEST and isinstance(value, list):
        for each in value[:_ELEMENTS]:
            yield from _inside(each, path, depth + 1)
