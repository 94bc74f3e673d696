"""Secrets in records of any topic, by what the records are: records of the metadata log with secrets, headers with a
secret's name, JSON in keys, values and headers (`value_secrets`).

A record of the metadata log is one wherever it lies (copied, produced, in a piece of a segment): a frame's version, the
type of a message with secrets, a version in which that message reads to the last byte, all of it clean. Of one in a
newer version all is masked from its first secret field on. A user's record that happens to look so loses no more than
what would be the secret fields.
"""

import re
from collections.abc import Sequence
from typing import Final

from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.embedded.mask import Mask
from dissector.protocol.embedded.messages import embedded_plan, newest_version
from dissector.protocol.embedded.secrets import SECRET_FIELDS, is_clean, mark_secret
from dissector.protocol.embedded.topics import metadata_records
from dissector.protocol.embedded.tree import reach
from dissector.protocol.embedded.value_secrets import is_secret_member, json_masks
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.tree import Node
from dissector.protocol.wire import LimitError, WireError, uvarint

_HEAD: Final = re.compile(rb"[\x00\x01][\x04\x0b][\x00-\x03]")
"""What a record with secrets begins with: the frame's version, 0 in Kafka 2.8; the type; a version, known or newer."""
_SECRET_RECORDS: Final = frozenset(("ConfigRecord", "UserScramCredentialRecord"))
_RESOURCES: Final = frozenset(bytes([1 << bit]) for bit in range(7))
"""Types of resources with configs, and those that may come."""
_LONGEST_NAME: Final = 1000
_WORD: Final = re.compile(rb"[A-Za-z0-9_.-]+")
_TEXT: Final = b" "
"""The first character that is one."""
_CONFIG: Final = re.compile(rb"[!-~]+")
_LONGEST_KEY: Final = 63
"""Bytes of a header's key whose length takes one byte."""
_LEAST: Final = 8
"""Bytes of a metadata record that is hardly one by chance."""


def content_masks(content: bytes) -> list[Mask]:
    """Return what to mask of the key or the value of a record, or of a header's value."""
    return [*_metadata_masks(content), *json_masks(content)]


def is_secret_header(key: bytes) -> bool:
    """Whether the value of a header is a secret as a whole."""
    return is_secret_member(key.decode("utf-8", "replace"))


def unread_masks(data: bytes) -> list[Mask]:
    """Return what to mask of bytes with records in them that can't be read, as those of a batch that was cut."""
    return [*json_masks(data, strict=True), *_headers(data), *_metadata_pieces(data)]


def are_metadata_records(values: Sequence[bytes | None]) -> bool:
    """Whether all values are records of the metadata log, and hardly by chance."""
    return bool(values) and all(map(_is_metadata_record, values)) and any(len(each or b"") >= _LEAST for each in values)


def _is_metadata_record(value: bytes | None) -> bool:
    name, version, at = _head(value or b"")
    if value is None or name is None or version > newest_version(name):
        return False
    traced = _traced(value, at, name, version)
    return traced is not None and traced.end == len(value) and is_clean(traced)


def _head(value: bytes) -> tuple[str | None, int, int]:
    """Return the message that a metadata record has, its version, and where it begins; None for anything else."""
    try:
        frame, at = uvarint(value, 0)
        kind, at = uvarint(value, at)
        version, at = uvarint(value, at)
    except WireError:
        return None, 0, 0
    return metadata_records().get(kind) if frame <= 1 else None, version, at


def _metadata_masks(value: bytes) -> list[Mask]:
    if _HEAD.match(value) is None:
        return []
    name, version, at = _head(value)
    if name not in _SECRET_RECORDS:
        return []
    traced = _traced(value, at, name, min(version, newest_version(name)))
    if traced is None or not is_clean(traced):
        return []
    found = _secrets(traced, name)
    if traced.end < len(value) and found:  # of a newer version
        return [Mask(min(each.start for each in found), len(value))]
    return found


def _secrets(traced: Node, name: str) -> list[Mask]:
    for path in SECRET_FIELDS[name]:
        for leaf, chain in reach(traced, path.split("."), (traced,)):
            mark_secret(leaf, chain)
    return [Mask(*node.secret) for node in traced.walk() if node.secret is not None]


def _traced(data: bytes, at: int, name: str, version: int) -> Node | None:
    """Return the structure of a message; None if it can't be read."""
    holder = Node("", "", "STRUCT", at, len(data))
    try:
        Tracer(data, at, len(data), RecordTracer([], frame_budget())).message(
            embedded_plan(name, version), name, holder
        )
    except (WireError, LimitError, KeyError):
        return None
    return holder.children[0]


def _metadata_pieces(data: bytes) -> list[Mask]:
    """Return the masks of records with secrets that stand anywhere in bytes, the last of which may be cut."""
    found: list[Mask] = []
    at = 0
    while head := _HEAD.search(data, at):
        at = head.start() + 1
        if not _has_names(data, head.end(), head[0][1] == 4):
            continue
        name, version, start = _head(data[head.start() : head.end()])
        if name not in _SECRET_RECORDS:
            continue
        traced = _traced(data, head.start() + start, name, min(version, newest_version(name)))
        if traced is None:
            found.append(Mask(head.end(), len(data)))
            break
        found += _secrets(traced, name)
        at = traced.end
    return found


def _has_names(data: bytes, at: int, is_config: bool) -> bool:
    """Whether texts without controls stand where such a record has names: of a config its resource's, which may be
    empty, and its own, which may be cut."""
    if not is_config:
        name, at = _name(data, at)
        return bool(name) and data[at : at + 1] < _TEXT  # a SCRAM mechanism by its number
    if data[at : at + 1] not in _RESOURCES:
        return False
    resource, at = (b" ", at + 2) if data[at + 1 : at + 2] == b"\x01" else _name(data, at + 1)
    return bool(resource) and _CONFIG.fullmatch(_name(data, at, is_cut=True)[0]) is not None


def _name(data: bytes, at: int, *, is_cut: bool = False) -> tuple[bytes, int]:
    """Return the text that stands there, and its end; an empty one if there is none."""
    try:
        size, at = uvarint(data, at)
    except WireError:
        return b"", at
    text = data[at : at + size - 1]
    is_there = 1 < size <= _LONGEST_NAME and (len(text) == size - 1 or is_cut) and min(text, default=0) >= 0x20
    return (text, at + size - 1) if is_there else (b"", at)


def _headers(data: bytes) -> list[Mask]:
    """Return the values of headers with a secret's name that stand anywhere in bytes."""
    found: list[Mask] = []
    for word in _WORD.finditer(data):
        for start in (word.start(), word.start() + 1):  # a length may be a letter
            size = data[start - 1] >> 1 if start and not data[start - 1] & 1 else 0
            if not 0 < size <= min(_LONGEST_KEY, word.end() - start) or not is_secret_header(
                data[start : start + size]
            ):
                continue
            try:
                length, at = uvarint(data, start + size)
            except WireError:
                continue
            found.append(Mask(at, min(len(data), at + (0 if length & 1 else length >> 1))))
    return found
