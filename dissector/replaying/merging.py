"""The answers of several brokers to the parts of one request, as one response: what the broker would have answered that
had all of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dissector.protocol.message import Values

_IDENTITY: Final = ("name", "topic", "topic_id", "group_id", "transactional_id", "resource_name", "partition_index",
                    "partition", "index", "node_id")  # fmt: skip
_LARGEST: Final = frozenset(("throttle_time_ms",))


def merged(bodies: Sequence[Values]) -> Values:
    """Merge bodies of one API and version: lists by what they name, of numbers the first that is no zero."""
    made = dict(bodies[0])
    for other in bodies[1:]:
        _add(made, other)
    return made


def _add(made: dict[str, Any], other: Mapping[str, Any]) -> None:
    for name, value in other.items():
        mine = made.get(name)
        if isinstance(value, list) and isinstance(mine, list):
            made[name] = _lists(mine, value)
        elif name in _LARGEST:
            made[name] = max(mine or 0, value)
        elif not mine:
            made[name] = value


def _lists(mine: list[Any], others: list[Any]) -> list[Any]:
    made = list(mine)
    places = {key: at for at, each in enumerate(made) if (key := _identity(each))}
    for each in others:
        at = places.get(_identity(each))
        if at is None:
            made.append(each)
        elif isinstance(each, Mapping):
            made[at] = dict(made[at])
            _add(made[at], each)
    return made


def _identity(value: object) -> tuple[tuple[str, object], ...]:
    if not isinstance(value, Mapping):
        return (("value", value),) if isinstance(value, str | int) else ()
    return tuple((name, value[name]) for name in _IDENTITY if value.get(name) is not None)
