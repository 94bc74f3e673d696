"""TCP ports that a program names."""

from collections.abc import Iterable
from typing import Final

_LAST_PORT: Final = 65_535


def checked_ports(given: object, call: str, *, otherwise: str = "") -> tuple[int, ...]:
    """Return one port or some as a tuple. Raises `ValueError` for what is none; `call` is what was called, `otherwise`
    what it takes besides."""
    __tracebackhide__ = True
    ports: tuple[object, ...] = (given,)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        ports = tuple(given)
    for each in ports:
        if isinstance(each, bool) or not isinstance(each, int) or not 0 < each <= _LAST_PORT:
            raise ValueError(f"{call}={given!r}): a port is a number from 1 to {_LAST_PORT}{otherwise}")
    return tuple(each for each in ports if isinstance(each, int))
