"""The fields of an exchange that a detector of one message reads, by name, and their values.

A field is named by its side and its path in the body, without indexes: ``request.topics.partitions.partition``; in the
header, ``request.header.client_id``. ``response.**.error_code`` is every field of that name, at any depth of the body.

Invariant: a detector sees the API, the version and the fields that it declares, and nothing else. So two exchanges of
one API and version that are equal in those fields have the same findings, and one of them is decoded for both.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from dissector.exchange.model import Exchange

REQUEST: Final = "request"
RESPONSE: Final = "response"
SIDES: Final = (REQUEST, RESPONSE)
_HEADER: Final = "header"
_BODY: Final = "body"
_ANYWHERE: Final = "**"


class UndeclaredFieldError(LookupError):
    """A detector asked for a field that is not among those that it reads."""


class ReadField(NamedTuple):
    """A field of one side: at `path`, which begins with ``header`` or ``body``, or wherever the body has the last name
    of it."""

    side: str
    path: tuple[str, ...]
    is_anywhere: bool

    def covers(self, path: Sequence[str]) -> bool:
        """Whether the value at a path is the field, or part of it."""
        if self.is_anywhere:
            return path[0] == _BODY and self.path[-1] in path[1:]
        return tuple(path[: len(self.path)]) == self.path

    def is_at(self, path: Sequence[str]) -> bool:
        """Whether the value at a path is the field as a whole."""
        return self.covers(path) and path[-1] == self.path[-1] and (self.is_anywhere or len(path) == len(self.path))

    def places(self, exchange: Exchange) -> Iterator[tuple[str, object]]:
        """The values of the field in an exchange, in the order of the wire, each with its path as findings have it. A
        body that does not fit its layout has none."""
        message = exchange.request if self.side == REQUEST else exchange.response
        if message is None:
            return
        if self.path[0] == _HEADER:
            yield from _at(message.header, self.path[1:], f"{self.side}.{_HEADER}")
        else:
            yield from self.in_body(message.decoded.fitting_body)

    def in_body(self, body: object) -> Iterator[tuple[str, object]]:
        """The values of a field of the body, each with its path."""
        find = _anywhere if self.is_anywhere else _at
        return find(body, self.path[1:], f"{self.side}.{_BODY}")


def read_field(name: str) -> ReadField:
    """A field by its name. Raises `ValueError` for what names none."""
    side, *path = name.split(".")
    is_anywhere = path[:1] == [_ANYWHERE] and len(path) == 2
    if side not in SIDES or not path or not all(path) or (_ANYWHERE in path and not is_anywhere):
        raise ValueError(f"{name!r} is no field: write request.FIELD or response.FIELD")
    if is_anywhere or path[0] != _HEADER:
        path[:is_anywhere] = [_BODY]
    return ReadField(side, tuple(path), is_anywhere)


class ReadFields:
    """What a detector sees of an exchange."""

    __slots__ = ("_declared", "_exchange")

    def __init__(self, exchange: Exchange, declared: "DeclaredFields") -> None:
        self._exchange = exchange
        self._declared = declared

    @property
    def api_key(self) -> int:
        """The key of the API."""
        key = self._exchange.api_key
        assert key is not None, "a request has an API"
        return key

    @property
    def version(self) -> int:
        """The version of the API."""
        return self._exchange.fields.version or 0

    def values(self, name: str) -> list[object]:
        """The values of a field, in the order of the wire, null included; none where a side or the field is not there,
        or the body does not fit its layout. Raises `UndeclaredFieldError`."""
        return [value for _, value in self.places(name)]

    def places(self, name: str) -> Iterator[tuple[str, object]]:
        """The same, each with its path: ``response.body.topics[0].partitions[2].leader_id``."""
        return self._declared.field(name).places(self._exchange)


class DeclaredFields:
    """The fields that a detector reads, by name."""

    def __init__(self, code: str, names: Iterable[str]) -> None:
        """Raises `ValueError` where a name is no field's."""
        self._code = code
        self._fields = {name: read_field(name) for name in names}

    def field(self, name: str) -> ReadField:
        """The field of a name. Raises `UndeclaredFieldError`."""
        found = self._fields.get(name)
        if found is None:
            raise UndeclaredFieldError(f"{self._code} reads {name} without declaring it")
        return found

    def of(self, side: str) -> list[ReadField]:
        """Those of one side."""
        return [each for each in self._fields.values() if each.side == side]


def _at(value: object, path: Sequence[str], place: str) -> Iterator[tuple[str, object]]:
    """The values at a path, of all elements of arrays on the way and at its end."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _at(each, path, f"{place}[{number}]")
    elif not path:
        yield place, value
    elif isinstance(value, dict) and path[0] in value:
        yield from _at(value[path[0]], path[1:], f"{place}.{path[0]}")


def _anywhere(value: object, path: Sequence[str], place: str) -> Iterator[tuple[str, object]]:
    """The values of a name, at any depth."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _anywhere(each, path, f"{place}[{number}]")
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from (_at if name == path[0] else _anywhere)(each, path[name == path[0] :], f"{place}.{name}")
