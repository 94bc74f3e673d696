"""Schemas of a release that nobody has seen, changed: an import breaks nothing.

`check_jar` imports them in a process of its own, as loaded schemas are kept, and decodes and explains what came of it.
"""

import contextlib
import copy
import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from dissector.cli.explain import explain
from dissector.protocol.explain.example import example
from dissector.protocol.message import read
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.schema import loader
from dissector.protocol.schema.importer.user_releases import import_user_release
from dissector.protocol.schema.model import SchemaError
from tests.protocol.schema.releases import Schema, haunt, jar, newer_heartbeat, schema
from tools.fuzz.children import in_child

STRANGE: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1, 32_767, 32_768, 2**31, 2_000_000_000, 2**70, 1e300, "", "0", "0+", "1+", "0-1", "0-999",
    "5-2", "none", "0-99999999999", "int8", "[]int8", "[][]int8", "string", "bytes", "records", "uuid", "float64",
    "House", "[]House", "class", "A" * 100, "None", "self", "\u0000", "../x", [], [{}], {}, "request", "data",
    "metadata", "coordinator-key", "9" * 400, "0x7f", "null", "-1", "nan",
)  # fmt: skip
KEYS: Final = (
    "apiKey", "type", "name", "validVersions", "flexibleVersions", "deprecatedVersions", "latestVersionUnstable",
    "commonStructs", "fields", "versions", "nullableVersions", "taggedVersions", "tag", "default", "ignorable",
    "entityType", "mapKey", "zeroCopy", "listeners",
)  # fmt: skip
FEW: Final = 3
"""Versions of a message that are decoded."""


def schemas_of(chance: random.Random) -> list[Schema]:
    """The schemas of a jar, some of their values changed."""
    bases: tuple[Callable[[], list[Schema]], ...] = (haunt, newer_heartbeat, _any_pair(chance))
    made = copy.deepcopy(chance.choice(bases)())
    for _ in range(chance.randint(1, 3)):
        table = chance.choice(list(_tables(made)))
        key = chance.choice([*table, *KEYS])
        is_strange = chance.random() < 0.7
        table[key] = copy.deepcopy(chance.choice(STRANGE) if is_strange else _other(made, key, chance))
    return made


def _any_pair(chance: random.Random) -> Callable[[], list[Schema]]:
    known = chance.choice(loader.apis())
    return lambda: [schema(known.request), schema(known.response)]


def _tables(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _tables(inner)


def _other(made: list[Schema], key: str, chance: random.Random) -> object:
    """A value that another part of the schemas has of this name."""
    return chance.choice([table[key] for table in _tables(made) if key in table] or [None])


def check_jar(data: bytes) -> None:
    """Import the schemas; raise what the import or using it raised, but for a refusal in one line."""

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            _use(json.loads(data), Path(folder))

    in_child(work)


def _use(schemas: list[Schema], folder: Path) -> None:
    os.environ["XDG_DATA_HOME"] = str(folder)
    for number, each in enumerate(schemas):
        each.setdefault("name", f"M{number}")
    named = [each for each in schemas if isinstance(each["name"], str) and "\0" not in each["name"]]
    try:
        import_user_release([_jar(folder, named)], "x")
    except SchemaError as error:
        _check_words(str(error))
        return
    for cache in (loader._index, loader.message, loader.schema, loader.alternatives):
        cache.cache_clear()
    for name in {str(each["name"]) for each in named} & {entry.name for entry in loader.entries()}:
        _read(name)


def _check_words(words: str) -> None:
    assert "\n" not in words
    assert len(words) < 1_000


def _jar(folder: Path, schemas: list[Schema]) -> Path:
    files = [each | {"name": Path(each["name"]).name} for each in schemas]
    return jar(folder / "x.jar", files)


def _read(name: str) -> None:
    message = loader.message(name)
    for version in list(message.valid_versions)[-FEW:]:
        data = example(message, version).data
        if message.api_key is not None and message.type in ("request", "response"):
            key = message.api_key
            is_request = message.type == "request"
            layout = request_layout(key, version) if is_request else response_layout(key, version, data)
            read(data, layout)
            read(data + bytes(100), layout)
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        explain(name, None)
