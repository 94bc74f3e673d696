"""The page of `kdissect explain` on a message: its fields, its bytes, its versions, an example."""

from collections.abc import Iterator
from typing import Final

from dissector.cli.render.pages import DIM, NAME, NOTE, TITLE, TYPE, Line, table, title
from dissector.cli.render.trees import shown
from dissector.core.text import counted
from dissector.protocol.codec.plan import plan
from dissector.protocol.explain.changes import VersionChanges, history
from dissector.protocol.explain.diagram import diagram
from dissector.protocol.explain.example import Example, example
from dissector.protocol.explain.field_rows import field_rows
from dissector.protocol.explain.releases import known_releases, released_in
from dissector.protocol.explain.target import ExplainTarget
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.model import MessageSchema
from dissector.protocol.tree import Node

BYTES_PER_LINE: Final = 8
"""Bytes of a field in one line of the example."""


def message_page(target: ExplainTarget, version: int) -> Iterator[Line]:
    """Yield the lines of the page."""
    yield from _head(target, version)
    for message in target.messages:
        yield from _layout(message, version)
    for message in target.messages:
        yield from title(f"{message.name} v{version}, the bytes")
        yield from ([(line, "")] for line in diagram(plan(message.name, version)))
    for message in target.messages:
        yield from _history(message, version)
    for message in target.messages:
        yield from _example(message, version)


def _head(target: ExplainTarget, version: int) -> Iterator[Line]:
    message = target.messages[0]
    key = f", API key {target.api.key}" if target.api else f" ({message.type})"
    yield [(f"{target.name} v{version}{key}", TITLE)]
    marks = ["flexible" if message.flexible_versions.contains(version) else "not flexible"]
    marks += ["deprecated"] if message.deprecated_versions.contains(version) else []
    marks += ["unstable: it may still change"] if message.unstable_versions.contains(version) else []
    yield [(f"  this version   {', '.join(marks)}; in Kafka {released_in(message, version) or 'no known release'}", "")]
    known = f"{known_releases()[0]} to {known_releases()[-1]}"
    yield [
        (f"  all versions   {message.valid_versions}; flexible {message.flexible_versions}; known: Kafka {known}", "")
    ]
    if target.api:
        request = request_header_version(target.api.key, version)
        response = response_header_version(target.api.key, version)
        yield [(f"  headers        RequestHeader v{request}, ResponseHeader v{response}", "")]
    if message.listeners:
        yield [(f"  answered by    {', '.join(message.listeners)}", "")]
    if message.aliases:
        yield [(f"  once called    {', '.join(message.aliases)}", "")]


def _layout(message: MessageSchema, version: int) -> Iterator[Line]:
    yield from title(f"{message.name} v{version}, the fields")
    rows = [
        (
            "  " * line.depth + line.name, line.type, "null" if line.nullable else "",
            "" if line.tag is None else str(line.tag), line.default, line.versions,
            ", ".join(line.aliases),
        )
        for line in field_rows(plan(message.name, version))
    ]  # fmt: skip
    if not rows:
        yield [("  none", DIM)]
        return
    head = ("field", "type", "may be", "tag", "default", "versions", "once called")
    yield from table(head, rows, (NAME, TYPE, "", "", "", DIM, DIM))


def _history(message: MessageSchema, version: int) -> Iterator[Line]:
    yield from title(f"{message.name}, version by version")
    for step in history(message):
        marks = "".join(f", {mark}" for mark in step.marks)
        here = "  <- this one" if step.version == version else ""
        yield [(f"  v{step.version}", NAME), (f"  Kafka {step.releases or '?'}{marks}", DIM), (here, NOTE)]
        yield from ([("    " + words, "")] for words in _changes(step, message))


def _changes(step: VersionChanges, message: MessageSchema) -> list[str]:
    if step.version == message.valid_versions.low:
        return ["the first version" if step.version == 0 else "the oldest version of these releases"]
    return [str(change) for change in step.changes] or ["no field changed"]


def _example(message: MessageSchema, version: int) -> Iterator[Line]:
    worked = example(message, version)
    yield from title(f"{message.name} v{version}, an example of {counted(len(worked.data), 'byte')}")
    yield [("  offset  bytes                    field", DIM)]
    for child in worked.tree.children:
        yield from _example_lines(child, worked, 0)
    if message.flexible_versions.contains(version):
        yield [("  Compact lengths and counts are one more than what they count; 0 is null.", DIM)]
    if message.type not in ("request", "response", "header"):
        yield [("  What holds such bytes may put their version, an INT16, before them.", DIM)]


def _example_lines(node: Node, worked: Example, depth: int) -> Iterator[Line]:
    """Yield the lines of a node, with eight bytes in each, and of the nodes below it."""
    name = "  " * depth + node.name
    if node.children:
        yield [(" " * 35, ""), (name, NAME), (f"  {node.note}", DIM)]
        for child in node.children:
            yield from _example_lines(child, worked, depth + 1)
        return
    raw = worked.data[node.start : node.end]
    note = f"  {node.note}" if node.note else ""
    for at in range(0, max(1, len(raw)), BYTES_PER_LINE):
        part = raw[at : at + BYTES_PER_LINE].hex(" ")
        line: Line = [(f"  {node.start + at:>6}", DIM), (f"  {part:<25}", TYPE)]
        yield [*line, (name, NAME), (f": {shown(node)}", ""), (note, DIM)] if at == 0 else line
