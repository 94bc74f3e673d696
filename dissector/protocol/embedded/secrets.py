"""Secrets: the fields that hold them, and how a frame's are masked.

Each byte of a secret becomes an asterisk before the frame is decoded. So no output (text, tree, bytes, JSON, an
export) can show it, all offsets stay the same, and only the secret's length remains. This module says which bytes of a
message that was understood are secret; `protocol.masking` masks the others whole.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import google_crc32c

from dissector.core.arrays import Bool, Int64, UInt64
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.public_configs import is_harmless_error, is_public_config
from dissector.protocol.embedded.secret_names import assigns_secret
from dissector.protocol.embedded.topics import CLUSTER_METADATA
from dissector.protocol.kernel.piece_tests import Marks
from dissector.protocol.records.batch import CRC_FROM, MASK, Batch
from dissector.protocol.tree import UNPARSED, Node

SECRET_FIELDS: Final = {
    "CreateDelegationTokenResponse": ("hmac",),
    "DescribeDelegationTokenResponse": ("tokens.hmac",),
    "RenewDelegationTokenRequest": ("hmac",),
    "ExpireDelegationTokenRequest": ("hmac",),
    "AlterUserScramCredentialsRequest": ("upsertions.salt", "upsertions.salted_password"),
    "AlterUserScramCredentialsResponse": ("results.error_message",),
    "AlterConfigsRequest": ("resources.configs.value",),
    "AlterConfigsResponse": ("responses.error_message",),
    "IncrementalAlterConfigsRequest": ("resources.configs.value",),
    "IncrementalAlterConfigsResponse": ("responses.error_message",),
    "CreateTopicsRequest": ("topics.configs.value",),
    "CreateTopicsResponse": ("topics.error_message", "topics.configs.value"),
    "DescribeConfigsResponse": (
        "results.error_message", "results.configs.value", "results.configs.synonyms.value",
    ),
    "SaslAuthenticateResponse": ("error_message",),
    "ConfigRecord": ("value",),
    "UserScramCredentialRecord": ("salt", "stored_key", "server_key"),
}  # fmt: skip
"""Fields by message. The value of a config is a secret unless the config is known to be none; an error message, unless
it is known to quote none. `sasl` marks those in tokens."""
SEALED_FIELDS: Final = {
    "SaslAuthenticateRequest": ("auth_bytes",),
    "SaslAuthenticateResponse": ("auth_bytes",),
    "EnvelopeRequest": ("request_data", "request_principal"),
    "EnvelopeResponse": ("response_data",),
}
"""Bytes fields with secrets inside, by message: one that can't be read to its end is a secret as a whole."""
SECRET_CARRIERS: Final = frozenset(SEALED_FIELDS)
"""Messages with secrets inside bytes fields."""
METADATA_CARRIERS: Final = frozenset(("FetchResponse", "FetchSnapshotResponse"))
"""Messages that may carry records of the metadata log as brokers use them."""
CARRIERS_BY_NAME: Final = frozenset(("FetchResponse", "ShareFetchResponse", "ProduceRequest"))
"""Messages that carry them only if they name the log, but for a Fetch whose request does."""
MESSAGES_WITH_SECRETS: Final = frozenset((*SECRET_FIELDS, *SECRET_CARRIERS, *METADATA_CARRIERS))
"""Messages that may have a secret."""
_METADATA_LOG: Final = {b"__clus": 0, b"ter_met": 3, bytes(15) + b"\x01": 15}
"""The log's name in parts, of which damage rarely hits all, and its topic id; with the place of their rarest byte."""
_LATEST: Final = 1 << 43
"""Milliseconds since 1970, in the year 2248."""
_FOREVER: Final = (1 << 63) - 1
_ZEROS_OF_ID: Final = 12
"""Zeros among the 16 bytes of a topic id that no random id has."""
_OF_NAME: Final = 12
"""Characters of the log's name in their places, that no other name has."""
_UNCLEAN: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_LOG_LEVELS: Final = frozenset(("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"))
_UNREAD_RECORDS: Final = frozenset(("bad-crc", "bad-record", "bad-compression", "over-limit"))
"""Codes of findings of a batch that can't be relied on."""
BROKER_LOGGER: Final = 8
"""The resource type whose configs are loggers."""
PASSWORD: Final = 9
"""A config's type in a DescribeConfigs response."""
DECIDING: Final = frozenset(("name", "config_name", "value", "config_type", "is_sensitive", "resource_type"))
"""Fields around a config's value that say whether it is a secret."""
MASKED: Final = "masked: --show-secrets shows it"


def mark_secret(leaf: Node, chain: Sequence[Node]) -> None:
    """Mark a field's content as secret, unless it is harmless; `chain` has the structures around it."""
    if is_secret(leaf.name, leaf.value, [{child.name: child.value for child in node.children} for node in chain[-3:]]):
        seal(leaf)


def is_secret(name: str, value: object, around: Sequence[Mapping[str, object]]) -> bool:
    """Whether one of `SECRET_FIELDS` has a secret; `around` are the values of the structures around it, at least of
    the three innermost, the field's own one last. Of these it depends on the fields in `DECIDING`."""
    text = value if isinstance(value, str) else ""
    if name == "error_message":
        return not is_harmless_error(text)
    return name != "value" or not _is_public_value(text, around[-3:])


def _is_public_value(value: str, around: Sequence[Mapping[str, object]]) -> bool:
    """Whether a value may be shown that a config has, or one of its synonyms, which may have another name."""
    if ("://" in value and "@" in value) or assigns_secret(value):
        return False  # of a URL, or of a login module
    if any(each.get("config_type") == PASSWORD or each.get("is_sensitive") for each in around):
        return False
    if any(each.get("resource_type") == BROKER_LOGGER for each in around):
        return value in _LOG_LEVELS
    names = [each.get("name", each.get("config_name")) for each in around if "value" in each]
    return bool(names) and all(isinstance(name, str) and is_public_config(name) for name in names)


def seal(leaf: Node) -> None:
    """Mark the content of a leaf as secret."""
    size = len(leaf.value.encode("utf-8", "surrogateescape")) if isinstance(leaf.value, str) else 0
    size = len(leaf.value) if isinstance(leaf.value, bytes) else size
    leaf.secret = (leaf.end - size, leaf.end) if size else None


def seal_unread(message: str, node: Node) -> None:
    """Mark the bytes fields of a message that should have been opened, and were not; where one of several was not, all
    of them."""
    names = SEALED_FIELDS.get(message, ())
    leaves = [child for child in node.children if child.name in names]
    if any(isinstance(leaf.value, bytes) and leaf.value and not leaf.children for leaf in leaves):
        for child in node.children:
            if isinstance(child.value, bytes):
                seal(child)


def seal_batch(batch: Node) -> None:
    """Mark the section of a batch of the metadata log: of a compressed one if it holds a secret; of any, if it can't be
    read, or is no batch."""
    if batch.type in ("MESSAGE", UNPARSED):
        batch.secret = (batch.start, batch.end)
    section = next((each for each in batch.children if each.name in ("(compressed)", "records")), None)
    if batch.type != "RECORD_BATCH" or section is None:
        return
    is_secret = any(node.secret is not None for node in batch.walk()) and section.name == "(compressed)"
    if is_secret or _is_unread(batch):
        section.secret = (section.start, batch.end)


def _is_unread(batch: Node) -> bool:
    nodes = list(batch.walk())
    if not _UNREAD_RECORDS.isdisjoint(finding.code for node in nodes for finding in node.findings):
        return True
    return any(_is_doubtful(node) or _is_unopened(node) for node in nodes)


def _is_unopened(node: Node) -> bool:
    """Whether a node is a record of the metadata log whose contents are not known."""
    if node.type == "HEADER":
        return True
    values = [child for child in node.children if child.name == "value"] if node.type == "RECORD" else []
    return any(isinstance(leaf.value, bytes) and leaf.value and not leaf.children for leaf in values)


def is_clean(tree: Node) -> bool:
    """Whether nothing in a tree looks as if its fields were read from the wrong places: no tagged fields that no schema
    has, no texts that are not text, no times that are none. Of secrets it does not matter."""
    return not any(_is_doubtful(node) for node in tree.walk())


def _is_doubtful(node: Node) -> bool:
    if node.type == "TAGGED_FIELD" or (node.type == UNPARSED and node.secret is None):
        return True
    if node.type == "INT64" and isinstance(node.value, int) and not is_time(node.value):
        return True
    if not isinstance(node.value, str) or node.secret is not None:
        return False
    return not is_client_id(node.value) if node.path == "header.client_id" else is_unclean(node.value)


def is_time(value: int) -> bool:
    """Whether a number of eight bytes can be what such messages have: a time or a duration, or none."""
    return -1 <= value < _LATEST or value == _FOREVER


def are_times(values: Int64) -> Bool:
    """The same of many numbers, `(n,)`."""
    found: Bool = ((values >= -1) & (values < _LATEST)) | (values == _FOREVER)
    return found


def is_unclean(text: str) -> bool:
    """Whether a text has control characters, or bytes that are none of UTF-8."""
    return bool(_UNCLEAN.search(text))


def is_client_id(text: str) -> bool:
    """Whether a text can be a client id. Some have a tab; a login has none where a header has its client id: two bytes
    of text are no length of one (`masking`)."""
    return not is_unclean(text.replace("\t", " "))


def may_hold_secrets(message: str | None, data: bytes, context: DecodingContext) -> bool:
    """Return whether a frame has to be searched for secrets."""
    if message in CARRIERS_BY_NAME:
        return (message == "FetchResponse" and context.fetches_metadata) or names_metadata_log(data)
    return message in MESSAGES_WITH_SECRETS


def names_metadata_log(data: bytes) -> bool:
    """Whether a frame has the name of the metadata log, or its topic id."""
    return any(mark in data for mark in _METADATA_LOG)


def name_metadata_log(addresses: UInt64, sizes: Int64) -> Bool:
    """The same of many frames in memory, `(n,)`."""
    return _marks().are_in(addresses, sizes)


@cache
def _marks() -> Marks:
    return Marks(_METADATA_LOG)


def is_metadata_log(name: str | None, topic_id: object) -> bool:
    """Whether a topic is the metadata log, or what damage made of it."""
    if name is not None:
        is_in_place = sum(one == other for one, other in zip(name, CLUSTER_METADATA, strict=False)) >= _OF_NAME
        return is_in_place or any(part.decode() in name for part in (*_METADATA_LOG,)[:-1])
    raw = _topic_id(topic_id)
    return raw != bytes(16) and raw.count(0) >= _ZEROS_OF_ID


def _topic_id(text: object) -> bytes:
    """A topic id as bytes; as many zeros for what is none."""
    try:
        return urlsafe_b64decode(f"{text}==")
    except ValueError:
        return bytes(16)


def may_name_metadata_log(topics: object) -> bool:
    """Whether topics of a Fetch request may be the metadata log: by name; by an id that no other topic has, as theirs
    are random (RFC 9562, 4.4)."""
    return isinstance(topics, list) and any(map(_may_be_metadata_log, topics))


def _may_be_metadata_log(topic: Mapping[str, object]) -> bool:
    name = topic.get("topic", topic.get("name"))
    return is_metadata_log(name, None) if isinstance(name, str) else not _is_random(_topic_id(topic.get("topic_id")))


def _is_random(topic_id: bytes) -> bool:
    return len(topic_id) == 16 and topic_id[6] >> 4 == 4 and topic_id[8] >> 6 == 2


def masked(data: bytes, tree: Node) -> bytes:
    """Return a frame with its secrets masked. The CRC of a batch with a secret is updated, unless it was wrong."""
    spans = list(_secret_spans(tree))
    if not spans:
        return data
    out = bytearray(data)
    for start, end in spans:
        out[start:end] = MASK * (end - start)
    for batch in tree.walk():
        if batch.type == "RECORD_BATCH" and any(batch.start <= start < batch.end for start, _ in spans):
            _fix_crc(out, batch, data)
    return bytes(out)


def _secret_spans(tree: Node) -> Iterator[tuple[int, int]]:
    return (node.secret for node in tree.walk() if node.secret is not None and node.source == 0)


def _fix_crc(out: bytearray, batch: Node, data: bytes) -> None:
    if Batch.read(data[batch.start : batch.end]).crc_valid:
        crc = google_crc32c.value(bytes(out[batch.start + CRC_FROM : batch.end]))
        out[batch.start + CRC_FROM - 4 : batch.start + CRC_FROM] = crc.to_bytes(4, "big")


def annotate_secrets(tree: Node) -> None:
    """Annotate every masked field."""
    for node in tree.walk():
        if node.secret is not None:
            node.note = MASKED
