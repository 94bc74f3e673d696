"""Message schemas out of Kafka's jars: facts only, in the form that a table has.

A jar is a zip file; every ``.json`` file under a ``message`` folder of it is a schema: JSON with ``//`` comment lines
(``common/message`` in kafka-clients and the coordinators' jars, ``message`` in kafka-storage), and so is every one
under ``metadata`` (kafka-metadata).

Invariants:
  * no prose leaves this file: ``about`` and comments are dropped;
  * a message that has no version left (``"validVersions": "none"``, as keys 4-7 in 4.0) is not there;
  * two jars of one release may not have the same message;
  * whatever is wrong with a jar is a `SchemaError`, and what is read of one is bounded: jars come from strangers.
"""

import json
import re
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dissector.protocol.schema.importer.release import Release
from dissector.protocol.schema.model import MessageSchema, SchemaError
from dissector.protocol.schema.table import message_of

_SCHEMA: Final = re.compile(r"(?:.*/)?(?:message|metadata)/[^/]+\.json")
_COMMENT: Final = re.compile(r"^[ \t]*//.*$", re.MULTILINE)
_VERSION_FILE: Final = "kafka/kafka-version.properties"
_JSON: Final = json.JSONDecoder()
_FLAGS: Final = ("ignorable", "mapKey", "zeroCopy", "latestVersionUnstable")
_DAMAGE: Final = (OSError, ValueError, EOFError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile,
                  zlib.error)  # fmt: skip
"""What reading a broken or encrypted zip file raises."""

LARGEST_SCHEMA: Final = 1 << 20
MOST_SCHEMAS: Final = 2_000
LARGEST_DIRECTORY: Final = 32 << 20
"""Bytes of a zip file's list of names: room for a quarter of a million."""
_END: Final = b"PK\x05\x06"
_END_SIZE: Final = 22
_LONGEST_COMMENT: Final = 0xFFFF


def read_release(label: str, jars: Iterable[Path]) -> Release:
    """All messages in the jars of one release. `label` is its version as people write it: ``4.4.0``."""
    messages: dict[str, MessageSchema] = {}
    for jar in jars:
        for message in _schemas(jar):
            if message.name in messages:
                raise SchemaError(f"{jar.name}: {message.name}: another jar of {label} has it too")
            messages[message.name] = message
    if not messages:
        raise SchemaError(f"{label}: no message schema in its jars")
    return Release(label, messages)


def version_of(jar: Path) -> str | None:
    """The release that a jar says it is of (kafka-clients does), or None."""
    with _opened(jar) as archive:
        names = archive.namelist()
        text = _text(archive, _VERSION_FILE) if _VERSION_FILE in names else ""
    found = re.search(r"^version=(\S+)$", text.replace("\r", ""), re.MULTILINE)
    return found[1] if found else None


def _schemas(jar: Path) -> list[MessageSchema]:
    """The messages of a jar, by name."""
    with _opened(jar) as archive:
        names = sorted(name for name in archive.namelist() if _SCHEMA.fullmatch(name))
        if len(names) > MOST_SCHEMAS:
            raise SchemaError(f"{jar.name}: {len(names):,} schemas are more than can be believed")
        texts = {name: _text(archive, name) for name in names}
    messages = (schema_of(text, f"{jar.name}: {Path(name).name}") for name, text in texts.items())
    return [message for message in messages if message is not None]


def _opened(jar: Path) -> zipfile.ZipFile:
    """A jar as a zip file, its directory checked before it is read."""
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
            raise SchemaError(f"{jar.name}: its list of files is larger than {LARGEST_DIRECTORY:,} bytes")
        return zipfile.ZipFile(jar)
    except _DAMAGE as error:
        raise SchemaError(f"{jar.name}: cannot be read as a jar: {error}") from error


def _text(archive: zipfile.ZipFile, name: str) -> str:
    jar = Path(archive.filename or "").name
    try:
        if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("compressed in a way that jars are not")
        with archive.open(name) as file:
            data = file.read(LARGEST_SCHEMA + 1)
        if len(data) > LARGEST_SCHEMA:
            raise SchemaError(f"{jar}: {Path(name).name}: larger than {LARGEST_SCHEMA:,} bytes")
        return data.decode()
    except _DAMAGE as error:
        raise SchemaError(f"{jar}: {Path(name).name}: cannot be read: {error}") from error


def schema_of(text: str, where: str) -> MessageSchema | None:
    """A message from the text of Kafka's schema file, or None where it has no version left."""
    try:
        plain = _COMMENT.sub("", text)
        # What stands after the object is not looked at, as by Kafka's own generator: a file of 2.8 ends in `}}`.
        raw, _ = _JSON.raw_decode(plain, len(plain) - len(plain.lstrip()))
        if isinstance(raw, dict) and raw.get("validVersions") == "none":
            return None
        facts = _without_prose(raw)
        if isinstance(facts, dict):
            facts.setdefault("flexibleVersions", "none")  # Kafka before 3.0 may leave it out
        return message_of(facts, where)
    except json.JSONDecodeError as error:
        raise SchemaError(f"{where}: line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{where}: cannot be read: {error}") from error


def _without_prose(raw: object) -> object:
    """Without prose, and with what Kafka's own generator lets a file leave out or spell otherwise made plain.

    A few files have tags as text (``"tag": "0"``) or flags (``"ignorable": "true"``), and a tagged field may lack
    `versions`: they are its tagged ones.
    """
    if isinstance(raw, list):
        return [_without_prose(each) for each in raw]
    if not isinstance(raw, dict):
        return raw
    facts = {key: _without_prose(value) for key, value in raw.items() if key != "about"}
    if isinstance(tag := facts.get("tag"), str) and tag.isdecimal():
        facts["tag"] = int(tag)
    facts |= {flag: facts[flag] == "true" for flag in _FLAGS if facts.get(flag) in ("true", "false")}
    if "versions" not in facts and "taggedVersions" in facts:
        facts["versions"] = facts["taggedVersions"]
    return facts
