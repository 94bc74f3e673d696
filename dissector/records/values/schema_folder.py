"""Schemas in a folder: files named by schema id (`7.avsc`) or by subject (`orders-value.proto`).

`.avsc` is Avro, `.proto` Protobuf, `.desc` a set of Protobuf descriptors (`protoc --include_imports
--descriptor_set_out`), `.json` says that values are JSON. A type that a schema refers to is in a file of its name:
`shop.Line.avsc`; an import of Protobuf in a file of its path below the folder.

Invariant: only files that were in the folder when it was opened are read; a name from the wire is never part of a path.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson

from dissector.core import limits
from dissector.core.text import os_reason
from dissector.records.values.opened import UnreadableError
from dissector.records.values.schema_reference import SchemaKey
from dissector.records.values.schemas import AVRO_SCHEMA, DESCRIPTORS, JSON_SCHEMA, PROTOBUF_TEXT, SchemaText

_TYPES: Final = {".avsc": AVRO_SCHEMA, ".proto": PROTOBUF_TEXT, ".desc": DESCRIPTORS, ".json": JSON_SCHEMA}


class SchemaFolder:
    """The schemas of a folder."""

    is_remote = False

    def __init__(self, path: str, bounds: limits.Limits = limits.DEFAULT) -> None:
        """Raises `OSError`."""
        self._most = bounds.schema_bytes
        self._files: dict[str, Path] = {}
        """By name without the suffix."""
        self._protos: dict[str, Path] = {}
        """By path below the folder."""
        top = Path(path)
        for each in sorted(top.iterdir())[: bounds.schemas]:
            if each.suffix in _TYPES and each.is_file():
                self._files.setdefault(each.stem, each)
        for each in sorted(top.rglob("*.proto"))[: bounds.schemas]:
            self._protos[each.relative_to(top).as_posix()] = each

    def __len__(self) -> int:
        return sum(each.suffix != ".json" for each in self._files.values())

    def text(self, key: SchemaKey) -> SchemaText | None:
        """Return a schema as it is written; None for one that is not there. Raises `UnreadableError`."""
        path = self._files.get(key.name)
        if path is None:
            return None
        kind, content = _TYPES[path.suffix], self._content(path)
        if kind == PROTOBUF_TEXT:
            return SchemaText(kind, content, path.name, tuple(self._imports(content, {path.name})))
        imports = tuple(self._referred(content, {path.stem})) if kind == AVRO_SCHEMA else ()
        return SchemaText(kind, content, path.stem, imports)

    def _content(self, path: Path) -> bytes:
        try:
            with path.open("rb") as file:
                return file.read(self._most + 1)
        except OSError as error:
            raise UnreadableError(f"{path.name}: {os_reason(error)}") from None

    def _imports(self, content: bytes, seen: set[str]) -> Iterator[SchemaText]:
        """Yield the `.proto` files of the folder that one imports, each before those that import it."""
        from dissector.records.values.proto_text import imports_of

        for name in imports_of(content.decode("utf-8", "replace")):
            if name in self._protos and name not in seen:
                seen.add(name)
                imported = self._content(self._protos[name])
                yield from self._imports(imported, seen)
                yield SchemaText(PROTOBUF_TEXT, imported, name)

    def _referred(self, content: bytes, seen: set[str]) -> Iterator[SchemaText]:
        """Yield the `.avsc` files of the folder that have a type which one refers to."""
        for name in _names(content):
            path = self._files.get(name)
            if path is not None and path.suffix == ".avsc" and name not in seen:
                seen.add(name)
                referred = self._content(path)
                yield from self._referred(referred, seen)
                yield SchemaText(AVRO_SCHEMA, referred, name)


def _names(content: bytes) -> Iterator[str]:
    """Yield the texts in a JSON schema that may be names of types, also without their namespace."""
    try:
        level: list[object] = [orjson.loads(content)]
    except ValueError:
        return
    namespace = level[0].get("namespace") if isinstance(level[0], dict) else None
    while level:
        each = level.pop()
        if isinstance(each, str):
            yield each
            if isinstance(namespace, str) and "." not in each:
                yield f"{namespace}.{each}"
        elif isinstance(each, dict):
            level += [each[name] for name in ("type", "items", "values", "fields") if name in each]
        elif isinstance(each, list):
            level += each
