"""Writes tables as text: one field per line, so that the diff of a release shows what it changed.

Invariants:
  * the same messages give the same bytes, in whatever order they are given;
  * a table reads back as the same message (`message_of`), or nothing is written;
  * tables of messages that no longer exist are removed from the folder.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dissector.protocol.schema.model import Field, MessageSchema, SchemaError
from dissector.protocol.schema.table import message_of


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another layout of some versions of a message: that of `release`."""

    message: MessageSchema
    release: str

    @property
    def file(self) -> str:
        return f"{self.message.name}@{self.release}"


def write_tables(folder: Path, messages: Iterable[MessageSchema], alternatives: Iterable[Alternative] = ()) -> None:
    """Write the tables of all messages and alternatives and the index; remove all other tables."""
    found = sorted(messages, key=lambda m: m.name)
    others = sorted(alternatives, key=lambda a: a.file)
    texts = {f"{m.name}.json": table_text(m) for m in found}
    texts |= {f"alternatives/{a.file}.json": table_text(a.message) for a in others}
    texts["index.json"] = _index_text(found, others)
    for path in sorted(folder.rglob("*.json")):
        if path.relative_to(folder).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def table_text(message: MessageSchema) -> str:
    """Return the text of a message's table."""
    common = _common_structs(message)
    head = _message_head(message)
    lines = ["{", *(f"  {json.dumps(key)}: {_plain(value)}," for key, value in head.items())]
    if common:
        lines.append('  "commonStructs": [')
        for number, (name, fields) in enumerate(common.items()):
            lines.append(f'    {{"name": {json.dumps(name)}, "fields": [')
            lines += _field_lines(fields, 6, common)
            lines.append("    ]}" + ("," if number < len(common) - 1 else ""))
        lines.append("  ],")
    if message.fields:
        lines += ['  "fields": [', *_field_lines(message.fields, 4, common), "  ]", "}", ""]
    else:
        lines += ['  "fields": []', "}", ""]
    text = "\n".join(lines)
    if message_of(json.loads(text), message.name) != message:
        raise SchemaError(f"{message.name}: its table would read back as another message")
    return text


def _message_head(message: MessageSchema) -> dict[str, object]:
    head: dict[str, object] = {} if message.api_key is None else {"apiKey": message.api_key}
    head |= {"type": message.type, "name": message.name}
    if message.aliases:
        head["aliases"] = list(message.aliases)
    if message.listeners:
        head["listeners"] = list(message.listeners)
    head["validVersions"] = str(message.valid_versions)
    if message.deprecated_versions:
        head["deprecatedVersions"] = str(message.deprecated_versions)
    head["flexibleVersions"] = str(message.flexible_versions)
    if message.latest_version_unstable:
        head["latestVersionUnstable"] = True
    if message.releases:
        head["releases"] = {release: str(versions) for release, versions in message.releases.items()}
    return head


def _common_structs(message: MessageSchema) -> dict[str, tuple[Field, ...]]:
    """The structs that the table keeps apart: those that Kafka does and that are still the same at every use."""
    uses: dict[str, tuple[Field, ...]] = {}

    def visit(fields: tuple[Field, ...]) -> None:
        for field in fields:
            struct = field.element_type
            if struct in message.common_structs and uses.setdefault(struct, field.fields) != field.fields:
                raise SchemaError(f"{message.name}: {field.name}: struct {struct} differs between its uses")
            visit(field.fields)

    visit(message.fields)
    return {name: uses[name] for name in message.common_structs if name in uses}


def _field_lines(fields: tuple[Field, ...], indent: int, common: Mapping[str, object]) -> list[str]:
    lines: list[str] = []
    for number, field in enumerate(fields):
        comma = "," if number < len(fields) - 1 else ""
        text = " " * indent + _plain(_field_head(field))[:-1]
        if field.fields and field.element_type not in common:
            lines.append(f'{text}, "fields": [')
            lines += _field_lines(field.fields, indent + 2, common)
            lines.append(" " * indent + "]}" + comma)
        else:
            lines.append(text + "}" + comma)
    return lines


def _field_head(field: Field) -> dict[str, object]:
    head: dict[str, object] = {"name": field.name, "type": field.type, "versions": str(field.versions)}
    optional: tuple[tuple[str, object, bool], ...] = (
        ("aliases", list(field.aliases), bool(field.aliases)),
        ("nullableVersions", str(field.nullable_versions), bool(field.nullable_versions)),
        ("taggedVersions", str(field.tagged_versions), bool(field.tagged_versions)),
        ("tag", field.tag, field.tag is not None),
        ("flexibleVersions", str(field.flexible_versions), field.flexible_versions is not None),
        ("default", field.default, field.default is not None),
        ("ignorable", True, field.ignorable),
        ("entityType", field.entity_type, field.entity_type is not None),
        ("mapKey", True, field.map_key),
        ("zeroCopy", True, field.zero_copy),
    )
    return head | {key: value for key, value, there in optional if there}


def _index_text(messages: list[MessageSchema], alternatives: list[Alternative]) -> str:
    """Return the text of the index: what the loader needs of every message before it reads a table."""
    rows = []
    for message in messages:
        head = _message_head(message)
        keys = ("apiKey", "type", "name", "aliases", "validVersions", "deprecatedVersions", "flexibleVersions",
                "latestVersionUnstable")  # fmt: skip
        rows.append(_plain({key: head[key] for key in keys if key in head}))
    others = [
        _plain({"name": a.message.name, "versions": str(a.message.valid_versions), "file": a.file})
        for a in alternatives
    ]
    return "{\n" + _section("messages", rows) + ",\n" + _section("alternatives", others) + "\n}\n"


def _section(key: str, rows: list[str]) -> str:
    return f'  "{key}": [\n    ' + ",\n    ".join(rows) + "\n  ]" if rows else f'  "{key}": []'


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
