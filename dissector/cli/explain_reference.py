"""Pages of `kdissect explain` that are not on a message: primitives, records, headers, errors, findings."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from dissector.cli.render.pages import DIM, NAME, TEXT_WIDTH, TITLE, TYPE, Line, table, title, wrapped
from dissector.findings.codes import CODES
from dissector.findings.codes import explain as explain_finding
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
from dissector.protocol.records.batch import HEADER_FIELDS
from dissector.protocol.records.compression import CODECS
from dissector.protocol.schema.errors import known_errors
from dissector.protocol.schema.loader import message


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
