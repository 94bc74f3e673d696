"""Writes `shared.h`: what the kernel shares with Python, from the tables in Python.

Nothing is imported but the standard library, as nothing else is there when the kernel is compiled: the modules are
parsed. What a table has is a macro, so that each C file takes what it uses: ``enum { OPERATION, WANT };``.
"""

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

PACKAGE: Final = Path(__file__).parents[2]
HEADER: Final = Path(__file__).with_name("shared.h")
SOURCES: Final = (
    "bulk/cell_lines.py", "cli/render/lines.py", "exchange/listing.py", "framing/fast_path.py",
    "protocol/codec/json_program.py", "protocol/codec/plan.py", "protocol/codec/program.py",
    "protocol/kernel/json_messages.py", "protocol/kernel/secret_marks.py", "protocol/kernel/shredding.py",
    "protocol/records/batch.py", "protocol/records/columns.py", "protocol/records/compression.py",
    "protocol/records/entries.py", "protocol/records/legacy.py", "protocol/schema/field_enums.py",
    "proxy_server/made_packets.py", "proxy_server/ordinary.py", "transport/deliveries.py", "transport/tcp_facts.py",
)  # fmt: skip
"""What is parsed; make compiles after an edit of one."""
STRUCTURES: Final = {
    "CELLS": "bulk/cell_lines.py", "DELIVERIES": "transport/deliveries.py",
    "JSON": "protocol/kernel/json_messages.py", "LINES": "cli/render/lines.py",
    "LOOKED_AT": "proxy_server/ordinary.py", "MADE_PACKETS": "proxy_server/made_packets.py",
    "ORDINARY": "proxy_server/ordinary.py", "RUNS": "framing/fast_path.py",
    "SECRET_MARKS": "protocol/kernel/secret_marks.py", "SHRED": "protocol/kernel/shredding.py",
    "TCP_FACTS": "transport/tcp_facts.py", "WAITING": "proxy_server/ordinary.py",
}  # fmt: skip
"""Members of structures, by the name that their text has in its module; see `core.kernel.structure_fields`."""
_TITLE: Final = "/* What Python has, too: made by shared.py, which names the modules. */"


def write() -> None:
    """Write the header, unless it is there as it should be. Raises `OSError`."""
    text = header()
    if not HEADER.exists() or HEADER.read_text(encoding="utf-8") != text:
        new = HEADER.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(HEADER)


def header() -> str:
    """Return the text of the header."""
    entries, batch, records = (_Module(f"protocol/records/{name}.py") for name in ("entries", "batch", "columns"))
    compression, codecs = _Module("protocol/records/compression.py"), _Module("protocol/schema/field_enums.py")
    program, json_program = _Module("protocol/codec/program.py"), _Module("protocol/codec/json_program.py")
    messages = _Module("protocol/kernel/json_messages.py")
    numbers, names = codecs.members("CompressionType"), compression.first_arguments("CODECS")
    scope = json_program.literal("SCOPE")
    found = {
        "OPERATION": program.members("Operation"),
        "FLAGS": program.numbers("COMPACT", "NULLABLE", "KNOWN_TAGS"),
        "MARK": json_program.members("Mark"),
        "WANT": program.members("Want"),
        "SCALAR": _numbered(_Module("protocol/codec/plan.py").literal("SCALARS")),
        "LENGTH": _numbered(program.literal("_LENGTHS")),
        "PROGRAM": program.numbers("WIDTH"),
        "SCOPE": _numbered(scope, "SCOPE_") | {"SCOPE_NAMES": len(scope)},
        "SHRED_ERROR": _Module("protocol/kernel/shredding.py").members("ShredError"),
        "OUTCOME": messages.members("Outcome"),
        "RECORDS_FORM": {f"RECORDS_{name}": n for name, n in messages.members("RecordsForm").items()},
        "CELL": _Module("exchange/listing.py").numbers("EMPTY", "NUMBER", "TEXT"),
        "RECORDS_ENTRY": entries.numbers("LOG_OVERHEAD", "SIZE_AT", "LEAST_RECORD"),
        "ENTRY_KIND": _numbered(records.names("KINDS"), "ENTRY_"),
        "MESSAGE_ATTRIBUTES": {
            f"MESSAGE_{name}": number
            for name, number in _Module("protocol/records/legacy.py").numbers("ATTRIBUTES_AT").items()
        },
        "BATCH_ERROR": records.members("BatchError"),
        "BATCH_OFFSET": _offsets(batch.literal("HEADER_FIELDS")) | batch.numbers("CRC_FROM"),
        "BATCH_ATTRIBUTE": batch.numbers("LOG_APPEND_TIME", "TRANSACTIONAL", "CONTROL")
        | compression.numbers("CODEC_MASK"),
        "DELIVERY_EVENT": _Module("transport/deliveries.py").members("EventKind"),
        "CODEC": {f"CODEC_{name}": numbers[name] for name in names},
    }
    lines = [
        f"#define {name} {', '.join(f'{key} = {value}' for key, value in each.items())}" for name, each in found.items()
    ]
    least = ", ".join(map(str, entries.literal("LEAST_SIZE")))
    texts = ", ".join(f'[{numbers[name]}] = "{text}"' for name, text in names.items())
    lines += [
        f"#define LEAST_SIZES {least} /* of an entry, by magic */",
        f"#define CODEC_NAMES {texts} /* by number */",
        f"#define ENTRY_FIELDS int64_t {', '.join(records.listed('ENTRY'))};",
        f"#define REPORT_FIELDS int64_t {', '.join(messages.listed('REPORT'))};",
        f"#define HOLE_FIELDS int64_t {', '.join(messages.listed('HOLE'))};",
    ]
    for name, path in STRUCTURES.items():
        lines.append(f"#define {name}_FIELDS {' '.join(_Module(path).literal(name).split())}")
    return "\n".join((_TITLE, "#ifndef SHARED_H", "#define SHARED_H", "", *lines, "", "#endif", ""))


class _Module:
    """The assignments and classes of a module, which is one of `SOURCES`."""

    def __init__(self, path: str) -> None:
        assert path in SOURCES, path
        tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
        self._classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self._values = dict(pair for node in tree.body for pair in _assigned(node))

    def literal(self, name: str) -> Any:
        """Return a value that is written out."""
        return ast.literal_eval(self._values[name])

    def numbers(self, *names: str) -> dict[str, int]:
        """Return numbers by their names."""
        return {name: self.literal(name) for name in names}

    def members(self, name: str) -> dict[str, int]:
        """Return the members of an enum."""
        pairs = (pair for node in self._classes[name].body for pair in _assigned(node))
        return {key: ast.literal_eval(value) for key, value in pairs}

    def names(self, name: str) -> list[str]:
        """Return the members of which a tuple consists."""
        value = self._values[name]
        assert isinstance(value, ast.Tuple)
        return [each.attr for each in value.elts if isinstance(each, ast.Attribute)]

    def first_arguments(self, name: str) -> dict[str, Any]:
        """Return the first argument of each call in a dictionary, by the member that is its key."""
        value = self._values[name]
        assert isinstance(value, ast.Dict)
        pairs = zip(value.keys, value.values, strict=True)
        return {
            key.attr: ast.literal_eval(each.args[0])
            for key, each in pairs
            if isinstance(key, ast.Attribute) and isinstance(each, ast.Call)
        }

    def listed(self, name: str) -> Iterable[str]:
        """Return the fields of a `numpy.dtype` that are listed, all of one type."""
        [found] = [node.iter for node in ast.walk(self._values[name]) if isinstance(node, ast.comprehension)]
        return tuple(ast.literal_eval(found))


def _assigned(node: ast.stmt) -> Iterable[tuple[str, ast.expr]]:
    """Yield the names that a statement assigns, and their values."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        yield node.targets[0].id, node.value
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
        for target, value in zip(node.targets[0].elts, node.value.elts, strict=True):
            if isinstance(target, ast.Name):
                yield target.id, value


def _numbered(names: Iterable[str], prefix: str = "") -> dict[str, int]:
    return {prefix + name.upper(): number for number, name in enumerate(names)}


def _offsets(fields: Iterable[tuple[str, str, int]]) -> dict[str, int]:
    """The offset of each field of a batch's header, and the size of all."""
    found, at = {}, 0
    for name, _, size in fields:
        found[f"{name.upper()}_AT"] = at
        at += size
    return found | {"BATCH_HEADER": at}
