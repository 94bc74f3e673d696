"""Makes the response to a request out of recorded ones: an entry for each entity that the request names.

The response that fits best says what is of the whole. The entry of a topic, a partition, a group comes from it, or from
another recorded response that has one. Of what was never recorded a server says what a broker says of what it does not
have; where a request only wants to be acknowledged, it is, as others of its kind were.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dissector.protocol.codec.plan import ArrayPlan, StructPlan, plan
from dissector.protocol.frame import response_layout_to_write
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.proxy_server.faults.error_levels import CODES, MESSAGES
from dissector.proxy_server.faults.error_responses import UNKNOWN_NUMBERS, body_for, meaning
from dissector.recorded_server.entities import IDENTITY, Identity, Names, own_identity, without_around
from dissector.recorded_server.exchanges import RecordedExchange
from dissector.recorded_server.layouts import as_earliest, as_latest, in_layout

NOT_RECORDED: Final = "not in the recording"
_ACKNOWLEDGED: Final = frozenset((
    ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT, ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.FIND_COORDINATOR,
))  # fmt: skip
"""Requests whose entities are answered like others of their kind."""
_NOTHING: Final = frozenset((ApiKey.OFFSET_FETCH,))
"""Requests that brokers answer with "none" where they know nothing."""


class Assembly:
    """The response to one request."""

    def __init__(
        self, key: int, version: int, request: Values, recorded: list[RecordedExchange], ids: Names, names: Names
    ) -> None:
        """`recorded` are exchanges of the API, the one that fits best first; `ids` are those of topics by name, `names`
        the reverse."""
        self._key, self._version, self._request = key, version, request
        self._recorded = recorded
        self._ids, self._names = ids, names
        self._of: StructPlan | None = None
        """The layout of the response."""
        self.unknown: list[str] = []
        """Entities that were not recorded."""

    def body(self) -> Values | None:
        """Return the values of the response; None if this version of the API has no response that is known."""
        layout = response_layout_to_write(self._key, self._version, {"throttle_time_ms": 0})
        if layout.body is None:
            return None
        of = self._of = plan(layout.body, layout.body_version)
        best = self._recorded[0]
        answered = as_earliest(self._key, as_latest(self._key, best.asked, best.answered))
        whole = in_layout(of, answered, self._ids, self._names)
        wanted = body_for(self._key, self._version, self._request)
        return whole if wanted is None else self._filled(of, wanted, whole, ())

    def _filled(self, of: StructPlan, wanted: Values, recorded: Mapping[str, Any], around: Identity) -> Values:
        """Return the recorded values of a structure, with those elements of its arrays that are wanted."""
        found: Values = dict(recorded)
        for field in (*of.fields, *of.tagged):
            element = _element(field.type)
            asked = wanted.get(field.name)
            if element is not None and isinstance(asked, list):
                if asked:
                    found[field.name] = [self._entry(element, each, around) for each in asked]
            elif asked is not None and not _is_result(field.name, field.type) and self._is_clients(of, field.name):
                found[field.name] = asked
        return found

    def _is_clients(self, of: StructPlan, name: str) -> bool:
        """Whether the client says what a field has: what identifies an entity. Of the whole, a broker gives ids that
        the client lacks."""
        return of is not self._of or meaning(name) in IDENTITY

    def _entry(self, of: StructPlan, wanted: Values, around: Identity) -> Values:
        own = own_identity(wanted, self._names)
        if not own:  # nothing says which one it is: members that leave
            return self._filled(of, wanted, {}, around)
        here = (*around, *own)
        recorded = next(self._entries(without_around(here)), None)
        if recorded is not None:
            return self._filled(of, wanted, in_layout(of, recorded, self._ids, self._names), here)
        if any(_element(field.type) is not None and wanted.get(field.name) for field in of.fields):
            return self._filled(of, wanted, {}, here)  # its elements may be there, or be alike
        self.unknown.append("-".join(str(value) for _, value in without_around(here)))
        if self._key in _ACKNOWLEDGED:
            names = {name for name, _ in own_identity(wanted, self._names)}
            alike = next(self._entries_with(names), None)
            return self._filled(of, wanted, in_layout(of, alike or {}, self._ids, self._names), here)
        return wanted if self._key in _NOTHING else _with_error(of, wanted)

    def _entries(self, identity: Identity) -> Iterator[Mapping[str, Any]]:
        """Yield what was recorded of an entity: in the best response, then in others, those without an error first."""
        best, *others = self._recorded
        for each in (best, *sorted(others, key=lambda other: (other.has_error, -other.time_ns))):
            yield from (values for found, values in self._walk(each) if found == identity)

    def _entries_with(self, names: set[str]) -> Iterator[Mapping[str, Any]]:
        for each in self._recorded:
            for found, values in self._walk(each):
                if found and names and found[-1][0] in names and any(name in CODES for name in values):
                    yield values

    def _walk(self, recorded: RecordedExchange) -> Iterable[tuple[Identity, Mapping[str, Any]]]:
        return entries(as_latest(recorded.key, recorded.asked, recorded.answered), self._names)


def entries(answered: Mapping[str, Any], names: Names) -> Iterator[tuple[Identity, Mapping[str, Any]]]:
    """Yield the structures in the arrays of a response, by what identifies them."""

    def walk(values: Mapping[str, Any], around: Identity) -> Iterator[tuple[Identity, Mapping[str, Any]]]:
        for value in values.values():
            for each in value if isinstance(value, list) else ():
                if isinstance(each, Mapping):
                    here = (*around, *own_identity(each, names))
                    yield without_around(here), each
                    yield from walk(each, here)

    yield from walk(answered, ())


def _with_error(of: StructPlan, wanted: Values) -> Values:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if "group_id" in wanted:
        code = ErrorCode.GROUP_ID_NOT_FOUND
    elif not {"name", "topic", "topic_id", "index", "partition_index", "partition"} & wanted.keys():
        code = ErrorCode.INVALID_REQUEST
    found = dict(wanted)
    for field in of.fields:
        if field.name in CODES:
            found[field.name] = int(code)
        elif field.name in MESSAGES:
            found[field.name] = NOT_RECORDED
    return found


def _is_result(name: str, of: object) -> bool:
    """Whether a field says how it went, not what was asked for."""
    return name in CODES or name in MESSAGES or isinstance(of, ArrayPlan) or name in UNKNOWN_NUMBERS


def _element(of: object) -> StructPlan | None:
    return of.element if isinstance(of, ArrayPlan) and isinstance(of.element, StructPlan) else None
