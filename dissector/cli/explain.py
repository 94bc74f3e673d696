"""`kdissect explain`: a page on a message (fields, diagram, history, example), or on a finding."""

from collections.abc import Iterator
from difflib import get_close_matches

from dissector.cli.errors import print_error
from dissector.cli.explain_reference import REFERENCES
from dissector.cli.render.pages import DIM, NAME, NOTE, TITLE, TYPE, Line, print_lines, table, title, wrapped
from dissector.cli.render.trees import shown
from dissector.core.text import counted
from dissector.findings.codes import CODES
from dissector.findings.codes import explain as explain_finding
from dissector.findings.explanation import Explanation
from dissector.protocol.codec.plan import plan
from dissector.protocol.explain.changes import VersionChanges, history
from dissector.protocol.explain.diagram import diagram
from dissector.protocol.explain.example import Example, example
from dissector.protocol.explain.field_rows import field_rows
from dissector.protocol.explain.releases import known_releases, released_in
from dissector.protocol.explain.target import ExplainTarget, UnknownTargetError, find_target
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.model import MessageSchema
from dissector.protocol.tree import Node

MOST_NEAR = 4
"""Similar names in an error."""
BYTES_PER_LINE = 8
"""Bytes of a field in one line of the example."""


def explain(word: str, version: str | None) -> int:
    """Print the page; return the exit code."""
    if word.lower() in REFERENCES:
        if version is not None:
            return print_error(f"{word.lower()} have no versions of their own; leave {version} out")
        return print_lines(REFERENCES[word.lower()]())
    explanation = explain_finding(word.lower())
    if explanation is not None:
        return print_lines(_finding(explanation))
    try:
        target = find_target(word)
        number = target.version(version)
    except UnknownTargetError as error:
        near = get_close_matches(word.lower(), CODES, n=MOST_NEAR)
        return print_error(f"unknown name {word!r}; did you mean {', '.join(near)}" if near else str(error))
    return print_lines(_page(target, number))


def _finding(explanation: Explanation) -> Iterator[Line]:
    yield [(explanation.title, TITLE)]
    yield [(f"  {explanation.code}, {explanation.severity}", DIM)]
    words = (explanation.what, explanation.why, explanation.what_to_do)
    for heading, text in zip(("What it means", "Why it happens", "What to do"), words, strict=True):
        yield from title(heading)
        yield from wrapped(text, 2)


def _page(target: ExplainTarget, version: int) -> Iterator[Line]:
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
