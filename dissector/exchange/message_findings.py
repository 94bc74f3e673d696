"""Message findings: rules over the fields of one exchange, each with the fields that it reads.

A rule is a function in `message_rules`:

    @message_finding("odd-session-epoch", Severity.NOTE, apis=("Fetch",), reads=("request.session_epoch",))
    def odd_session_epoch(fields: ReadFields) -> Iterator[Finding]:
        for epoch in fields.values("request.session_epoch"):
            if isinstance(epoch, int) and epoch % 2:
                yield fields.finding(f"session epoch {epoch} is odd", "request.body.session_epoch")

A field is named by its side and its path in the body, without indexes: ``request.topics.partitions.partition``; in the
header, ``request.header.client_id``. ``response.**.error_code`` is every field of that name, at any depth.

Invariant: a rule sees the API, the version and the fields that it reads, and nothing else. So two exchanges of one API
and version that are equal in those fields have the same findings, and `findings.message_column` may decode one of them
for both.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from dissector.core.finding import Finding, Severity
from dissector.exchange.field_paths import found
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.structs import values_of
from dissector.protocol.schema.loader import api

REQUEST: Final = "request"
RESPONSE: Final = "response"
HEADER: Final = "header"
ANYWHERE: Final = "**"


class UndeclaredFieldError(LookupError):
    """A rule asked for a field that is not among those that it reads."""


class FieldRead(NamedTuple):
    """A field that a rule reads, of one side: `path` from the body, or every field of one of `names`."""

    side: str
    path: tuple[str, ...]
    names: frozenset[str] = frozenset()

    def covers(self, path: Sequence[str]) -> bool:
        """Whether the value at `path`, which begins with ``header`` or ``body``, is part of what is read."""
        if self.names:
            return path[0] != HEADER and not self.names.isdisjoint(path[1:])
        wanted = self.path if self.path[0] == HEADER else ("body", *self.path)
        return tuple(path[: len(wanted)]) == wanted

    def values(self, message: ExchangeMessage) -> list[object]:
        """All values of the field in a message, in the order of the wire; null where null is."""
        if self.names:
            return values_of(message.layout, message.body, self.names)
        if self.path[0] == HEADER:
            return found(message.header, self.path[1:])
        return found(message.body, self.path)


def field_reads(reads: tuple[str, ...]) -> tuple[FieldRead, ...]:
    """Field names as rules write them, parsed. Those that are read anywhere in one side are looked up together."""
    parsed: list[FieldRead] = []
    names: dict[str, set[str]] = {}
    for read in reads:
        side, _, rest = read.partition(".")
        path = tuple(rest.split("."))
        if side not in (REQUEST, RESPONSE) or not all(path):
            raise ValueError(f"{read!r} is no field: write request.FIELD or response.FIELD")
        if path[0] == ANYWHERE:
            names.setdefault(side, set()).add(".".join(path[1:]))
        else:
            parsed.append(FieldRead(side, path))
    return (*parsed, *(FieldRead(side, (), frozenset(some)) for side, some in names.items()))


class ReadFields:
    """What a rule sees of an exchange: its API and version, and the fields that the rule reads."""

    __slots__ = ("_request", "_response", "_rule", "api_key")

    def __init__(
        self, rule: "Rule", api_key: int, request: ExchangeMessage | None, response: ExchangeMessage | None
    ) -> None:
        self._rule = rule
        self._request = request
        self._response = response
        self.api_key = api_key

    @property
    def version(self) -> int:
        """The version of the exchange."""
        shown = self._response if self._request is None else self._request
        return 0 if shown is None else shown.layout.body_version

    def values(self, *fields: str) -> list[object]:
        """All values of these fields, in the order of the wire; none where a side or a field is not there, or the body
        does not fit its layout."""
        values: list[object] = []
        for read in self._rule.field_reads(fields):
            message = self._request if read.side == REQUEST else self._response
            if message is not None and (not message.rest or read.path[:1] == (HEADER,)):
                values += read.values(message)
        return values

    def finding(self, message: str, path: str = "", severity: Severity | None = None) -> Finding:
        """A finding with the code of the rule; `severity` where it is not the rule's."""
        return Finding(self._rule.code, severity or self._rule.severity, message, path)


Find = Callable[[ReadFields], Iterable[Finding]]
"""The function of a rule."""


@dataclass(frozen=True)
class Rule:
    """One class of message findings."""

    code: str
    severity: Severity
    find: Find
    reads: tuple[FieldRead, ...]
    declared: frozenset[str]
    apis: frozenset[str]
    """Empty for all APIs."""

    @cached_property
    def _parsed(self) -> dict[tuple[str, ...], tuple[FieldRead, ...]]:
        return {}

    def field_reads(self, fields: tuple[str, ...]) -> tuple[FieldRead, ...]:
        """Some of the declared fields, parsed. A rule asks for the same ones of each exchange."""
        reads = self._parsed.get(fields)
        if reads is None:
            if not self.declared.issuperset(fields):
                undeclared = ", ".join(sorted(set(fields) - self.declared))
                raise UndeclaredFieldError(f"{self.code} reads {undeclared} without declaring it")
            reads = self._parsed[fields] = field_reads(fields)
        return reads


class MessageRules:
    """All rules. `rule` registers one."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = list(rules)
        self._by_api: dict[int, tuple[Rule, ...]] = {}
        self._by_sides: dict[tuple[int, bool, bool], tuple[Rule, ...]] = {}

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def copy(self) -> "MessageRules":
        """A registry with the same rules, to which others can be added."""
        return MessageRules(self._rules)

    def rule(
        self, code: str, severity: Severity, *, reads: tuple[str, ...], apis: tuple[str, ...] = ()
    ) -> Callable[[Find], Find]:
        """Register the function below as a rule."""

        def register(find: Find) -> Find:
            self._rules.append(Rule(code, severity, find, field_reads(reads), frozenset(reads), frozenset(apis)))
            self._by_api.clear()
            self._by_sides.clear()
            return find

        return register

    def of_api(self, api_key: int) -> tuple[Rule, ...]:
        """The rules for exchanges of an API."""
        rules = self._by_api.get(api_key)
        if rules is None:
            known = api(api_key)
            rules = tuple(rule for rule in self._rules if not rule.apis or (known and known.name in rule.apis))
            self._by_api[api_key] = rules
        return rules

    def _of_sides(self, api_key: int, *, has_request: bool, has_response: bool) -> tuple[Rule, ...]:
        """The rules that read a field of a side that is there."""
        key = api_key, has_request, has_response
        rules = self._by_sides.get(key)
        if rules is None:
            sides = {side for side, is_there in ((REQUEST, has_request), (RESPONSE, has_response)) if is_there}
            rules = tuple(rule for rule in self.of_api(api_key) if any(read.side in sides for read in rule.reads))
            self._by_sides[key] = rules
        return rules

    def find(self, api_key: int, request: ExchangeMessage | None, response: ExchangeMessage | None) -> list[Finding]:
        """The findings of an exchange, of which either side may be missing."""
        findings: list[Finding] = []
        for rule in self._of_sides(api_key, has_request=request is not None, has_response=response is not None):
            findings += rule.find(ReadFields(rule, api_key, request, response))
        return findings

    def reads(self, api_key: int, side: str) -> tuple[FieldRead, ...]:
        """The fields of one side on which the findings of an API depend."""
        return tuple(read for rule in self.of_api(api_key) for read in rule.reads if read.side == side)
