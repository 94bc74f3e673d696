"""Builds the response with an error to a request, from the request and the schema of the response.

What the request asks for (topics, partitions, groups, members, resources, …) is in the response again, each with the
error where it has a code (`error_levels`). Which array of the request an array of the response repeats is found by
their fields, under the names that mean the same; nothing is known here of any single API but for `_NOT_ASKED` and
ApiVersions.

Invariants, property tests over all APIs, versions and errors: a response that is built can be read exactly, and has the
error; it has each entity of the request once, where the error is one of entities.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan, VariablePlan, plan
from dissector.protocol.frame import frame_bytes, response_layout_to_write
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.wire import EncodeError
from dissector.proxy_server.faults.error_levels import CODES, MESSAGES, Level, level_of

WORDS: Final = "injected by kdissect"
_NOT_ASKED: Final = frozenset(("forgotten_topics_data",))
"""Arrays of requests with what is asked for no longer."""
_MEANS: Final = {
    "topic": "name", "topic_name": "name", "topic_names": "name", "user": "name",
    "partition": "index", "partition_index": "index", "partition_id": "index", "partition_indexes": "index",
    "partitions": "index", "groups": "group_id", "group_ids": "group_id", "groups_names": "group_id",
    "coordinator_keys": "key", "transactional_ids": "transactional_id",
}  # fmt: skip
"""Names of one meaning."""
_IDENTITY: Final = frozenset((
    "name", "topic_id", "index", "group_id", "key", "transactional_id", "producer_id", "member_id",
    "group_instance_id", "resource_type", "resource_name", "entity", "id", "feature", "session_id",
))  # fmt: skip
"""What identifies an entity: this is repeated, and no more."""
_ENTITY: Final = "entity"
UNKNOWN_NUMBERS: Final = frozenset((
    "base_offset", "high_watermark", "last_stable_offset", "low_watermark", "committed_offset", "generation_id",
    "node_id", "port", "producer_epoch", "end_offset", "offset", "leader_id", "leader_epoch", "controller_id",
))  # fmt: skip
"""Numbers that brokers set to -1 beside an error, whatever the schema's default."""


def error_response(
    key: int, version: int, correlation_id: int, request: Values, code: ErrorCode, words: str = WORDS
) -> bytes | None:
    """Return the frame of a response with an error, and `words` where it has a message; None if the response has no
    place for it."""
    if key == ApiKey.API_VERSIONS and code == ErrorCode.UNSUPPORTED_VERSION:
        only = {"api_key": int(ApiKey.API_VERSIONS), "min_version": 0, "max_version": 0}
        body: Values | None = {"error_code": int(code), "api_keys": [only]}
    else:
        body = body_for(key, version, request, code, words)
    if body is None:
        return None
    layout = response_layout_to_write(key, version, body)
    try:
        return frame_bytes(layout, {"correlation_id": correlation_id}, body)
    except EncodeError:
        return None


def body_for(
    key: int, version: int, request: Values, code: ErrorCode = ErrorCode.NONE, words: str = WORDS
) -> Values | None:
    """Return the body of a response with an entry for each entity of the request, and an error; None if the response
    has no place for it. Fields that nothing is known of are missing: they have their defaults."""
    layout = response_layout_to_write(key, version, {"throttle_time_ms": 0})
    if layout.body is None:
        return None
    body, has_error = _Filling(code, words).struct(plan(layout.body, layout.body_version), [request], is_element=False)
    return body if has_error else None


def with_code(code: ErrorCode, of: StructPlan, values: Values, *, is_element: bool = False) -> bool:
    """Set an error in a response as a broker sent it, at its level; return whether there is a place."""
    level = level_of(code)
    own = [field.name for field in _fields(of) if field.name in CODES]
    stops = bool(own) and (level is Level.OUTERMOST or (level is Level.TOPIC and is_element))
    is_inside = False
    for field in () if stops else _fields(of):
        element = _element(field.type)
        for each in (values.get(field.name) or ()) if element is not None and _has_code(element) else ():
            assert element is not None
            is_inside |= with_code(code, element, each, is_element=True)
    if is_inside or not own:
        return is_inside
    for name in own:
        values[name] = int(code)
    return True


class _Filling:
    """Fills a response."""

    def __init__(self, code: ErrorCode, words: str) -> None:
        self._code = code
        self._words = words
        self._level = level_of(code)

    def struct(self, of: StructPlan, asked: list[Values], *, is_element: bool) -> tuple[Values, bool]:
        """Return the values of a structure, and whether the error is in it; `asked` are the structures of the request
        around it, the innermost first."""
        values: Values = {}
        has_own = any(field.name in CODES for field in _fields(of))
        stops = has_own and (self._level is Level.OUTERMOST or (self._level is Level.TOPIC and is_element))
        is_inside = False
        for field in _fields(of):
            element = _element(field.type)
            if element is not None and _has_code(element):
                found = [] if stops else self._array(field.name, element, asked)
                values[field.name] = [each for each, _ in found]
                is_inside |= any(has_error for _, has_error in found)
            elif (repeated := _repeated(field, asked)) is not None:
                values[field.name] = repeated
            elif (unknown := _unknown(field)) is not None:
                values[field.name] = unknown
        if has_own and not is_inside:
            for field in _fields(of):
                if field.name in CODES:
                    values[field.name] = int(self._code)
                elif field.name in MESSAGES and self._code:
                    values[field.name] = self._words
        return {name: value for name, value in values.items() if not self._is_left_out(of, name, value)}, (
            is_inside or has_own
        )

    @staticmethod
    def _is_left_out(of: StructPlan, name: str, value: object) -> bool:
        """Whether a tagged field has nothing to say."""
        return value == [] and any(field.name == name for field in of.tagged)

    def _array(self, name: str, element: StructPlan, asked: list[Values]) -> list[tuple[Values, bool]]:
        found = _asked_for(element, asked[0])
        return [self.struct(element, [*each, *asked], is_element=True) for each in found]


def _unknown(field: FieldPlan) -> object | None:
    """What brokers set beside an error, if it is not the default of a field; of a structure, too."""
    if isinstance(field.type, StructPlan):
        if field.type.nullable or field.tag is not None:
            return None
        inside = {each.name: _unknown(each) for each in field.type.fields}
        return {name: value for name, value in inside.items() if value is not None} or None
    is_number = isinstance(field.type, ScalarPlan) and field.type.code.islower()
    return -1 if field.name in UNKNOWN_NUMBERS and is_number else None


def _fields(of: StructPlan) -> Iterator[FieldPlan]:
    yield from of.fields
    yield from of.tagged


def _element(of: TypePlan) -> StructPlan | None:
    """The structure of an array's elements."""
    return of.element if isinstance(of, ArrayPlan) and isinstance(of.element, StructPlan) else None


def _has_code(of: StructPlan) -> bool:
    return any(
        field.name in CODES or ((element := _element(field.type)) is not None and _has_code(element))
        for field in _fields(of)
    )


def meaning(name: str) -> str:
    """Return the name that stands for all of one meaning."""
    return _MEANS.get(name, name)


def _repeated(field: FieldPlan, asked: list[Values]) -> object | None:
    """The value of a field that identifies what was asked for; None for no such field."""
    if meaning(field.name) not in _IDENTITY or not _may_identify(field):
        return None
    for each in asked:
        for name, value in each.items():
            if meaning(name) == meaning(field.name) and _fits(field.type, value):
                return _copied(field.type, value)
    return None


def _may_identify(field: FieldPlan) -> bool:
    """Whether a field is a value; the parts of the entity of a quota are an array (AlterClientQuotas)."""
    return not isinstance(field.type, StructPlan | ArrayPlan) or field.name == _ENTITY


def _fits(of: TypePlan, value: object) -> bool:
    if isinstance(of, ArrayPlan):
        return isinstance(value, list)
    if isinstance(of, VariablePlan) or of == ScalarPlan("uuid"):
        return isinstance(value, str)
    return isinstance(value, int)


def _copied(of: TypePlan, value: object) -> object:
    """A value with those fields only that the response has."""
    element = _element(of)
    if element is None or not isinstance(value, list):
        return value
    names = {field.name for field in element.fields}
    return [{name: each[name] for name in names if name in each} for each in value]


class _AskedArray(NamedTuple):
    """An array of the request that a response may repeat."""

    score: int
    depth: int
    name: str
    elements: list[list[Values]]
    """Of each element, the structures that it is in, the innermost first."""


def _asked_for(element: StructPlan, asked: Values) -> list[list[Values]]:
    """Return what of a request the elements of an array repeat, each as the structures that it is in."""
    keys = _keys(element)
    is_in_order = not keys and all(
        field.name in CODES or field.name in MESSAGES or isinstance(field.type, ArrayPlan) for field in element.fields
    )
    found = [each for each in _candidates(asked, []) if is_in_order or _score(element, each)]
    if not found:
        return []
    scored = [each._replace(score=_score(element, each)) for each in found]
    best = max((each.score, -each.depth) for each in scored)
    elements = [one for each in scored if (each.score, -each.depth) == best for one in each.elements]
    if is_in_order:
        return elements
    return list({repr([_repeated(field, each) for field in _fields(element)]): each for each in elements}.values())


def _keys(element: StructPlan) -> set[str]:
    """What identifies an element."""
    return {meaning(field.name) for field in _fields(element) if _may_identify(field)} & _IDENTITY


def _score(element: StructPlan, candidate: _AskedArray) -> int:
    """How much of what identifies an element a candidate has, in its arrays too."""
    if not candidate.elements:
        return 0
    one = candidate.elements[0]
    names = {
        meaning(name) for each in one for name, value in each.items() if not isinstance(value, list) or name == _ENTITY
    }
    score = 2 * len(_keys(element) & names)
    inner = [found for field in _fields(element) if (found := _element(field.type)) is not None and _has_code(found)]
    for each in inner:
        score += max((_score(each, below) for below in _candidates(one[0], [])), default=0) > 0
    if not any(meaning(name) in _keys(element) for name in one[0]):
        return 0
    return score


def _candidates(asked: Mapping[str, object], around: list[Values]) -> Iterator[_AskedArray]:
    """Yield the arrays of a structure of a request, and those in their elements."""
    for name, value in asked.items():
        if not isinstance(value, list) or name in _NOT_ASKED:
            continue
        elements = [[each if isinstance(each, dict) else {name: each}, *around] for each in value]
        yield _AskedArray(0, len(around), name, elements)
        inner: dict[str, list[list[Values]]] = {}
        for each in elements:
            for below in _candidates(each[0], each):
                inner.setdefault(below.name, []).extend(below.elements)
        for below_name, of_below in inner.items():
            yield _AskedArray(0, len(around) + 1, below_name, of_below)
