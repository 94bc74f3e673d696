"""Message schemas out of Kafka's jars: facts only, in the form that a table has.

A jar is a zip file; every ``.json`` file under a ``message`` folder of it is a schema: JSON with ``//`` comment lines
(``common/message`` in kafka-clients and the coordinators' jars, ``message`` in kafka-storage), and so is every one
under ``metadata`` (kafka-metadata).

Invariants:
  * no prose leaves this file: ``about`` and comments are dropped;
  * a message that has no version left (``"validVersions": "none"``, as keys 4-7 in 4.0) is not there;
  * two jars of one release may not have the same message.
"""

import json
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dissector.protocol.schema.model import Message, SchemaError
from dissector.protocol.schema.table import message_of

_SCHEMA: Final = re.compile(r"(?:.*/)?(?:message|metadata)/[^/]+\.json")
_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Release:
    """What one release of Kafka has: its messages by name."""

    label: str
    messages: dict[str, Message]


def read_release(label: str, jars: Iterable[Path]) -> Release:
    """All messages in the jars of one release. `label` is its version as people write it: ``4.4.0``."""
    messages: dict[str, Message] = {}
    for jar in jars:
        for message in _schemas(jar):
            if message.name in messages:
                raise SchemaError(f"{jar.name}: {message.name}: another jar of {label} has it too")
            messages[message.name] = message
    if not messages:
        raise SchemaError(f"{label}: no message schema in its jars")
    return Release(label, messages)


def _schemas(jar: Path) -> list[Message]:
    """The messages of a jar, by name."""
    try:
        with zipfile.ZipFile(jar) as archive:
            texts = {name: archive.read(name).decode() for name in archive.namelist() if _SCHEMA.fullmatch(name)}
    except (OSError, zipfile.BadZipFile) as error:
        raise SchemaError(f"{jar.name}: cannot be read as a jar: {error}") from error
    messages = (schema_of(text, f"{jar.name}: {Path(name).name}") for name, text in sorted(texts.items()))
    return [message for message in messages if message is not None]


def schema_of(text: str, where: str) -> Message | None:
    """A message from the text of Kafka's schema file, or None where it has no version left."""
    try:
        raw = json.loads(_COMMENT.sub("", text))
    except json.JSONDecodeError as error:
        raise SchemaError(f"{where}: line {error.lineno}: {error.msg}") from error
    if isinstance(raw, dict) and raw.get("validVersions") == "none":
        return None
    return message_of(_facts(raw), where)


def _facts(raw: object) -> object:
    """Without prose, and with what Kafka's own generator lets a file leave out or spell otherwise made plain.

    A few files have tags as text (``"tag": "0"``), and a tagged field may lack `versions`: they are its tagged ones.
    """
    if isinstance(raw, list):
        return [_facts(each) for each in raw]
    if not isinstance(raw, dict):
        return raw
    facts = {key: _facts(value) for key, value in raw.items() if key != "about"}
    if isinstance(tag := facts.get("tag"), str) and tag.isdecimal():
        facts["tag"] = int(tag)
    if "versions" not in facts and "taggedVersions" in facts:
        facts["versions"] = facts["taggedVersions"]
    return facts
