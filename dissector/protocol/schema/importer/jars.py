"""Reads message schemas from Kafka's jars, without prose, in the form of a table.

A jar is a zip file. Every ``.json`` file in a ``message`` folder is a schema: JSON with ``//`` comment lines
(``common/message`` in kafka-clients and the coordinators' jars, ``message`` in kafka-storage). So is every one under
``metadata`` (kafka-metadata).

Invariants:
  * prose is dropped here: ``about`` and comments;
  * a message without versions (``"validVersions": "none"``, as keys 4-7 in 4.0) is skipped;
  * two jars of one release may not have the same message;
  * every problem of a jar is a `SchemaError`, and what is read is bounded, as jars are untrusted input.
"""

import json
import re
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dissector.protocol.schema.model import Field, MessageSchema, SchemaError
from dissector.protocol.schema.table import message_of


@dataclass(frozen=True, slots=True)
class Release:
    """The messages of a release by name."""

    label: str
    messages: dict[str, MessageSchema]


_SCHEMA: Final = re.compile(r"(?:.*/)?(?:message|metadata)/[^/]+\.json")
_COMMENT: Final = re.compile(r"^[ \t]*//.*$", re.MULTILINE)
_VERSION_FILE: Final = "kafka/kafka-version.properties"
_JSON: Final = json.JSONDecoder()
_FLAGS: Final = ("ignorable", "mapKey", "zeroCopy", "latestVersionUnstable")
_DAMAGE: Final = (OSError, ValueError, EOFError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile,
                  zlib.error)  # fmt: skip
"""Exceptions from a broken or encrypted zip file."""

LARGEST_SCHEMA: Final = 1 << 20
MOST_SCHEMAS: Final = 2_000
MOST_FIELDS: Final = 100_000
"""Fields of a release in all versions of its messages; Apache's have 10,000."""
LARGEST_DIRECTORY: Final = 32 << 20
"""Bytes of a zip file's directory: room for a quarter of a million names."""
_END: Final = b"PK\x05\x06"
_END_SIZE: Final = 22
_LONGEST_COMMENT: Final = 0xFFFF


def read_release(label: str, jars: Iterable[Path]) -> Release:
    """Return all messages in the jars of one release. `label` is its version: ``4.4.0``."""
    messages: dict[str, MessageSchema] = {}
    size = 0
    for jar in jars:
        for message in _schemas(jar):
            if message.name in messages:
                raise SchemaError(f"{jar.name}: {message.name}: another jar of {label} has it too")
            messages[message.name] = message
            size += count_fields(message.fields) * len(list(message.valid_versions))
            if size > MOST_FIELDS:
                raise SchemaError(f"{label}: more than {MOST_FIELDS:,} fields in all versions of its messages")
    if not messages:
        raise SchemaError(f"{label}: its jars contain no message schema")
    return Release(label, messages)


def count_fields(fields: Iterable[Field]) -> int:
    """Return the number of fields, with those in them."""
    return sum(1 + count_fields(each.fields) for each in fields)


def version_of(jar: Path) -> str | None:
    """Return the release named in a jar (as in kafka-clients), or None."""
    with _opened(jar) as archive:
        names = archive.namelist()
        text = _text(archive, _VERSION_FILE) if _VERSION_FILE in names else ""
    found = re.search(r"^version=(\S+)$", text.replace("\r", ""), re.MULTILINE)
    return found[1] if found else None


def _schemas(jar: Path) -> list[MessageSchema]:
    """Return the messages of a jar, in the order of names."""
    with _opened(jar) as archive:
        names = sorted(name for name in archive.namelist() if _SCHEMA.fullmatch(name))
        if len(names) > MOST_SCHEMAS:
            raise SchemaError(f"{jar.name}: {len(names):,} schemas are too many")
        texts = {name: _text(archive, name) for name in names}
    messages = (schema_of(text, f"{jar.name}: {Path(name).name}") for name, text in texts.items())
    return [message for message in messages if message is not None]


def _opened(jar: Path) -> zipfile.ZipFile:
    """Open a jar as a zip file, after checking the size of its directory."""
    try:
        if not jar.exists():
            raise SchemaError(f"{jar}: no such file")
        if not jar.is_file():
            raise SchemaError(f"{jar}: not a file")
        with jar.open("rb") as file:
            file.seek(max(0, jar.stat().st_size - _END_SIZE - _LONGEST_COMMENT))
            tail = file.read(_END_SIZE + _LONGEST_COMMENT)
        at = tail.rfind(_END)
        if at >= 0 and int.from_bytes(tail[at + 12 : at + 16], "little") > LARGEST_DIRECTORY:
            raise SchemaError(f"{jar.name}: its file list is larger than {LARGEST_DIRECTORY:,} bytes")
        return zipfile.ZipFile(jar)
    except _DAMAGE as error:
        raise SchemaError(f"{jar.name}: cannot be read as a jar: {error}") from error


def _text(archive: zipfile.ZipFile, name: str) -> str:
    jar = Path(archive.filename or "").name
    try:
        if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("compressed with a method that jars do not use")
        with archive.open(name) as file:
            data = file.read(LARGEST_SCHEMA + 1)
        if len(data) > LARGEST_SCHEMA:
            raise SchemaError(f"{jar}: {Path(name).name}: larger than {LARGEST_SCHEMA:,} bytes")
        return data.decode()
    except _DAMAGE as error:
        raise SchemaError(f"{jar}: {Path(name).name}: cannot be read: {error}") from error


def schema_of(text: str, where: str) -> MessageSchema | None:
    """Return the message of a schema file of Kafka's, or None if it has no versions."""
    try:
        plain = _COMMENT.sub("", text)
        # Text after the object is ignored, as Kafka's generator does: a file of 2.8 ends in `}}`.
        raw, _ = _JSON.raw_decode(plain, len(plain) - len(plain.lstrip()))
        if isinstance(raw, dict) and raw.get("validVersions") == "none":
            return None
        table = _without_prose(raw)
        if isinstance(table, dict):
            table.setdefault("flexibleVersions", "none")  # optional before Kafka 3.0
        return message_of(table, where)
    except json.JSONDecodeError as error:
        raise SchemaError(f"{where}: line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{where}: cannot be read: {error}") from error


def _without_prose(raw: object) -> object:
    """Return a value of a schema file without prose, and with variants normalized that Kafka's generator accepts.

    A few files have tags (``"tag": "0"``) or flags (``"ignorable": "true"``) as text. A tagged field may lack
    `versions`, which are then its tagged ones.
    """
    if isinstance(raw, list):
        return [_without_prose(each) for each in raw]
    if not isinstance(raw, dict):
        return raw
    table = {key: _without_prose(value) for key, value in raw.items() if key != "about"}
    if isinstance(tag := table.get("tag"), str) and tag.isdecimal():
        table["tag"] = int(tag)
    table |= {flag: table[flag] == "true" for flag in _FLAGS if table.get(flag) in ("true", "false")}
    if "versions" not in table and "taggedVersions" in table:
        table["versions"] = table["taggedVersions"]
    return table
