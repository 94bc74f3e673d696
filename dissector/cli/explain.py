"""`kdissect explain`: a page on a message (`explain_message`), a finding, an error, or a rule of `kdissect check`; and
on what all messages have: primitives, records, headers, errors, findings."""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from dissector.analysis.conformance import RULES
from dissector.analysis.conformance.rule import ProtocolRule
from dissector.cli.errors import print_error
from dissector.cli.explain_message import message_page
from dissector.cli.render.pages import DIM, NAME, TEXT_WIDTH, TITLE, TYPE, Line, print_lines, table, title, wrapped
from dissector.core.suggestions import alternatives
from dissector.findings.explanation import Explanation
from dissector.findings.registry import CODES
from dissector.findings.registry import explain as explain_finding
from dissector.protocol.codec.plan import plan
from dissector.protocol.explain.diagram import RULER, diagram, draw
from dissector.protocol.explain.reference import (
    BATCH_BITS,
    MESSAGE_SET_FIELDS,
    RECORD_FIELDS,
    batch_boxes,
    header_lines,
    message_boxes,
    primitive_lines,
)
from dissector.protocol.explain.target import UnknownTargetError, find_target, normalized, target_names
from dissector.protocol.records.batch import HEADER_FIELDS
from dissector.protocol.records.compression import CODECS
from dissector.protocol.schema.errors import EXPECTED_ERRORS, ErrorInfo, known_errors
from dissector.protocol.schema.loader import message

MOST_NEAR: Final = 4
"""Similar names in an error."""
SHORTEST_PART: Final = 3
"""Characters of a word that is looked for inside names."""


def explain(word: str, version: str | None) -> int:
    """Print the page; return the exit code."""
    page = _page_without_versions(word)
    if page is not None:
        return print_lines(page) if version is None else print_error(f"{word} has no versions: leave out {version}")
    try:
        target = find_target(word)
        number = target.version(version)
    except UnknownTargetError as error:
        near = [] if word.isdecimal() or version is not None else _near(word)
        return print_error(f"nothing is called {word!r}; did you mean {alternatives(near)}" if near else str(error))
    return print_lines(message_page(target, number))


def _page_without_versions(word: str) -> Iterable[Line] | None:
    """Return the page on what is no message; None if the word names nothing of the kind."""
    name = word.lower()
    if name in REFERENCES:
        return REFERENCES[name]()
    if (explanation := explain_finding(name)) is not None:
        return _finding(explanation)
    for each in known_errors().values():
        if each.name.lower() == name:
            return _error(each)
    rule = next((each for each in RULES if each.code == name), None)
    return None if rule is None else _rule(rule)


def _near(word: str) -> list[str]:
    """Return names like a word: those that it is a part of, or else those that are spelled alike."""
    names = target_names() | {normalized(name): name for name in _names_without_versions()}
    wanted = normalized(word)
    found = [name for name in sorted(names, key=len) if wanted in name] if len(wanted) >= SHORTEST_PART else []
    found = found or get_close_matches(wanted, names, n=MOST_NEAR)
    return list(dict.fromkeys(names[name] for name in found))[:MOST_NEAR]


def _names_without_versions() -> Iterator[str]:
    yield from CODES
    yield from (each.name for each in known_errors().values())
    yield from (each.code for each in RULES)


def _finding(explanation: Explanation) -> Iterator[Line]:
    yield [(explanation.title, TITLE)]
    yield [(f"  {explanation.code}, {explanation.severity}", DIM)]
    words = (explanation.what, explanation.why, explanation.what_to_do)
    for heading, text in zip(("What it means", "Why it happens", "What to do"), words, strict=True):
        yield from title(heading)
        yield from wrapped(text, 2)


def _error(error: ErrorInfo) -> Iterator[Line]:
    yield [(error.name, TITLE)]
    yield [(f"  error code {error.code}, {'' if error.retriable else 'not '}retriable", DIM)]
    yield from title("What a client should do")
    yield from wrapped(error.advice, 2)
    for response in sorted(name for name, code in EXPECTED_ERRORS if code == error.code):
        yield from wrapped(f"In {response} it is a normal step of the protocol.", 2)
    yield from title("Where it occurs in a capture")
    yield [(f"  kdissect show FILE -Y 'error == {error.name}'", "")]


def _rule(rule: ProtocolRule) -> Iterator[Line]:
    yield [(f"{rule.title[0].upper()}{rule.title[1:]}", TITLE)]
    yield [(f"  {rule.code}, a rule for the {rule.side}", DIM)]
    yield from title("What requires it")
    yield from wrapped(rule.source, 2)
    yield from title("Whether a capture keeps it")
    yield [("  kdissect check FILE", "")]


def _primitives() -> Iterator[Line]:
    yield [("Primitive types of the wire", TITLE)]
    rows = [(line.name, line.words, line.value, line.data.hex(" ")) for line in primitive_lines()]
    yield from table(("type", "layout", "value", "its bytes"), rows, (NAME, "", "", TYPE))


def _records() -> Iterator[Line]:
    yield [("Record batch (magic 2, since Kafka 0.11)", TITLE)]
    yield from _drawn([*RULER, *draw(batch_boxes())])
    yield [("  batch_length counts what follows it; crc is a CRC-32C over all from attributes on.", DIM)]
    yield from table(
        ("field", "type"), [(name, kind) for name, kind, _ in HEADER_FIELDS], (NAME, TYPE)
    )  # fmt: skip
    yield from title("Bits of attributes")
    yield from table(("bits", "meaning"), BATCH_BITS, (NAME, ""))
    yield from title("Codecs")
    yield from table(("number", "codec"), [(str(number), codec.name) for number, codec in CODECS.items()], (NAME, ""))
    yield from title("Record")
    yield from table(("field", "type", "meaning"), RECORD_FIELDS, (NAME, TYPE, ""))
    for magic in (0, 1):
        yield from title(f"Message of a message set, magic {magic}")
        yield from _drawn([*RULER, *draw(message_boxes(magic))])
    yield from table(("field", "type", "meaning"), MESSAGE_SET_FIELDS, (NAME, TYPE, ""))


def _headers() -> Iterator[Line]:
    yield [("Headers: between the size of a frame and its body", TITLE)]
    for name in ("RequestHeader", "ResponseHeader"):
        for version in message(name).valid_versions:
            yield from title(f"{name} v{version}")
            yield from _drawn(diagram(plan(name, version)))
    yield from title("Header versions of APIs")
    rows = [
        (str(line.api.key), line.api.name, str(line.versions), f"v{line.request}", f"v{line.response}")
        for line in header_lines()
    ]
    yield from table(("key", "API", "versions", "request", "response"), rows, (DIM, NAME, "", TYPE, TYPE))
    yield [
        ("  A version is flexible where RequestHeader v2 stands before it. ApiVersions is always answered with", DIM)
    ]
    yield [("  ResponseHeader v0; ControlledShutdown v0 alone has RequestHeader v0.", DIM)]


def _errors() -> Iterator[Line]:
    yield [("Error codes", TITLE)]
    for each in known_errors().values():
        yield [
            (f"  {each.code:>4}  ", TYPE),
            (each.name, NAME),
            ("  retriable" if each.retriable else "", DIM),
        ]
        yield from wrapped(each.advice, 8, TEXT_WIDTH - 8)


def _drawn(lines: Iterable[str]) -> Iterator[Line]:
    return ([(line, "")] for line in lines)


def _findings() -> Iterator[Line]:
    yield [("Findings", TITLE)]
    explanations = [each for code in CODES if (each := explain_finding(code)) is not None]
    rows = [(each.code, each.severity.value, each.title) for each in explanations]
    yield from table(("code", "severity", "meaning"), rows, (NAME, TYPE, ""))


REFERENCES: Final[dict[str, Callable[[], Iterator[Line]]]] = {
    "primitives": _primitives, "records": _records, "headers": _headers, "errors": _errors, "findings": _findings,
}  # fmt: skip
