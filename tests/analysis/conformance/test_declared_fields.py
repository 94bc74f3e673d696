"""A rule on single messages reads no field that it does not declare: of messages equal in those it sees one."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dissector.analysis.conformance import RULES, ProtocolRule
from dissector.analysis.conformance.declared_fields import fields_of
from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.rule import RuleBook, RuleMemory, Verdict
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.findings.framework.read_fields import REQUEST, RESPONSE, ReadField
from tests.analysis.conformance.making import made
from tests.analysis.conformance.test_any_input import pairs
from tests.analysis.conformance.test_rules import MADE
from tests.conftest import PCAPS
from tests.protocol.vectors import RELEASES
from tests.traffic import capture_of, conversation

pytestmark = pytest.mark.slow
SINGLE = [rule for rule in RULES if rule.reads is not None]
Path_ = tuple[str, ...]


class Watched(dict[str, Any]):
    """The fields of a structure. Each that is asked for is noted, by its path: whole arrays where their elements have
    no fields. What is read of a field's bytes (``metadata_decoded``) is that field."""

    def __init__(self, values: dict[str, Any], path: Path_, seen: set[Path_]) -> None:
        super().__init__(values)
        self._path = path
        self._seen = seen

    def __getitem__(self, name: str) -> Any:
        return self._watched(name, super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        return self._watched(name, super().get(name, default))

    def _watched(self, name: str, value: Any) -> Any:
        path = (*self._path, name.removesuffix("_decoded"))
        self._seen.add(path)
        if name.endswith("_decoded"):
            return value
        if isinstance(value, dict):
            return Watched(value, path, self._seen)
        if isinstance(value, list):
            return [Watched(each, path, self._seen) if isinstance(each, dict) else each for each in value]
        return value


def read_by(rule: ProtocolRule, exchange: Exchange) -> set[tuple[str, Path_]]:
    """The fields that a rule reads of an exchange, each with its side."""
    is_request = rule.begin.request is not RuleMemory.request
    if exchange.request is None or (exchange.response is None and not is_request):
        return set()
    event = MessageEvent.of(exchange, is_request=is_request)
    if not event.is_read:
        return set()
    of_event: set[Path_] = set()
    of_request: set[Path_] = set()
    message = event.message
    body = Watched(dict(event.body), ("body",), of_event)
    event.message = SimpleNamespace(  # all that rules ask of a message
        body=Watched(dict(message.body), ("body",), of_event), layout=message.layout, whole=message.whole,
        size=message.size, decoded=message.decoded, masked=message.masked, context=message.context,
        header=message.header, rest=message.rest,
    )  # fmt: skip
    event._body, event._request = body, Watched(dict(event.request), ("body",), of_request)
    look = rule.begin.request if is_request else rule.begin.response
    list(look(event) or ())  # type: ignore[call-arg]  # a function, which remembers nothing
    side = REQUEST if is_request else RESPONSE
    return {(side, path) for path in of_event} | {(REQUEST, path) for path in of_request}


def undeclared(rule: ProtocolRule, read: Iterable[tuple[str, Path_]]) -> list[tuple[str, Path_]]:
    """Those that are neither declared nor around what is."""
    assert rule.reads is not None
    declared = [field for names in rule.reads for field in fields_of(names)]
    return sorted(each for each in read if not any(is_declared(field, *each) for field in declared))


def is_declared(field: ReadField, side: str, path: Path_) -> bool:
    around = field.is_anywhere or field.path[: len(path)] == path
    return field.side == side and (field.covers(path) or around)


def exchanges(path: str) -> Iterator[Exchange]:
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        yield from capture.unmasked().at(range(len(capture)))


@pytest.mark.long
def test_rules_read_what_they_declare(tmp_path: Path) -> None:
    """Of all values that Apache's codec writes, and of what keeps and breaks each rule."""
    found: dict[str, set[tuple[str, Path_]]] = {rule.code: set() for rule in SINGLE}
    captures = [
        capture_of(tmp_path, conversation(pairs(RELEASES[-1]))),
        str(PCAPS / "plain-socket-message-sets.pcapng"),
    ]
    for number, (good, bad) in enumerate(MADE.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        captures.append(made(folder, [*good, *bad]))
    for path in captures:
        for exchange in exchanges(path):
            for rule in SINGLE:
                if not rule.apis or exchange.fields.api in rule.apis:
                    found[rule.code] |= read_by(rule, exchange)
    assert {rule.code: some for rule in SINGLE if (some := undeclared(rule, found[rule.code]))} == {}
    with_fields = {rule.code for rule in SINGLE if rule.reads and not only_tags(rule)}
    assert {code for code in with_fields if not found[code]} == set(), "each was seen to read"


def only_tags(rule: ProtocolRule) -> bool:
    return all("unknown_tagged_fields" in str(names) for names in rule.reads or ())


def test_what_a_rule_does_not_declare_is_found(tmp_path: Path) -> None:
    book = RuleBook()

    @book.response("bad", "", {"Metadata"}, reads={"response.brokers.node_id": None})
    def reads_more(event: MessageEvent) -> Iterator[Verdict]:
        """it reads more than it declares."""
        for broker in event.body["brokers"]:
            yield Verdict(event, broker["node_id"] != broker["port"], "", "")
        yield Verdict(event, bool(event.request.get("topics")), "", "")

    [rule] = book
    keeps, _ = MADE["leader-listed"]
    read = set[tuple[str, Path_]]().union(*(read_by(rule, each) for each in exchanges(made(tmp_path, keeps))))
    assert undeclared(rule, read) == [(REQUEST, ("body", "topics")), (RESPONSE, ("body", "brokers", "port"))]
