"""What programs pass: ports, paths, filters. A wrong one is an error that names the argument."""

from collections.abc import Iterable
from os import PathLike, fspath
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


def checked_paths(given: object, call: str) -> list[str]:
    """Return one path or some as a list. Raises `TypeError` for what is none; `call` is what was called."""
    __tracebackhide__ = True
    paths: list[object] = [given]
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | PathLike):
        paths = [*given]
    found: list[str] = []
    for each in paths:
        if not isinstance(each, str | PathLike):
            raise TypeError(f"{call}={given!r}): a path is text, or a Path")
        found.append(str(fspath(each)))
    return found


def checked_filter(given: object) -> str:
    """Return a filter's text. Raises `TypeError` for what is none."""
    __tracebackhide__ = True
    if not isinstance(given, str):
        raise TypeError(f"a filter is text, such as 'api == Produce', not {given!r}")
    return given
