"""Secrets: the fields that hold them, and how a frame's are masked.

Each byte of a secret becomes an asterisk before the frame is decoded. So no output (text, tree, bytes, JSON, an
export) can show it, all offsets stay the same, and only the secret's length remains.
"""

import re
from typing import Final

import google_crc32c

from dissector.protocol.records.batch import CRC_FROM, Batch
from dissector.protocol.tree import Node

SECRET_FIELDS: Final = {
    "CreateDelegationTokenResponse": ("hmac",),
    "DescribeDelegationTokenResponse": ("tokens.hmac",),
    "RenewDelegationTokenRequest": ("hmac",),
    "ExpireDelegationTokenRequest": ("hmac",),
    "AlterUserScramCredentialsRequest": ("upsertions.salted_password",),
    "AlterConfigsRequest": ("resources.configs.value",),
    "IncrementalAlterConfigsRequest": ("resources.configs.value",),
    "CreateTopicsRequest": ("topics.configs.value",),
    "ConfigRecord": ("value",),
    "UserScramCredentialRecord": ("stored_key", "server_key"),
}
"""Fields by message. The value of a config is a secret if the config's name says so. `sasl` marks those in tokens."""

SECRET_CARRIERS: Final = frozenset(
    ("SaslAuthenticateRequest", "SaslAuthenticateResponse", "EnvelopeRequest", "EnvelopeResponse")
)
"""Messages with secrets inside bytes fields."""
METADATA_CARRIERS: Final = frozenset(("FetchResponse", "FetchSnapshotResponse"))
"""Messages that may carry records of the metadata log."""
_METADATA_LOG: Final = (b"__cluster_metadata", bytes(15) + b"\x01")
"""The log's name, and its topic id."""
_SECRET_CONFIG: Final = re.compile(r"password|secret|jaas|keystore\.key|credential|private", re.IGNORECASE)
MASK: Final = b"*"


def mark_secret(leaf: Node, struct: Node) -> None:
    """Mark a field's content as secret, unless it is the value of a config whose name is harmless."""
    name = next((each.value for each in struct.children if each.name in ("name", "config_name")), None)
    if leaf.name == "value" and not _SECRET_CONFIG.search(str(name)):
        return
    size = len(leaf.value.encode("utf-8", "surrogateescape")) if isinstance(leaf.value, str) else 0
    size = len(leaf.value) if isinstance(leaf.value, bytes) else size
    leaf.secret = (leaf.end - size, leaf.end) if size else None


def may_hold_secrets(message: str | None, data: bytes) -> bool:
    """Return whether a frame has to be searched for secrets."""
    if message in METADATA_CARRIERS:
        return any(mark in data for mark in _METADATA_LOG)
    return message in SECRET_FIELDS or message in SECRET_CARRIERS


def masked(data: bytes, tree: Node) -> bytes:
    """Return a frame with its secrets masked. The CRC of a batch with a secret is updated, unless it was wrong."""
    spans = [node.secret for node in tree.walk() if node.secret is not None and node.source == 0]
    if not spans:
        return data
    out = bytearray(data)
    for start, end in spans:
        out[start:end] = MASK * (end - start)
    for batch in tree.walk():
        if batch.type == "RECORD_BATCH" and any(batch.start <= start < batch.end for start, _ in spans):
            _fix_crc(out, batch, data)
    return bytes(out)


def _fix_crc(out: bytearray, batch: Node, data: bytes) -> None:
    if Batch.read(data[batch.start : batch.end]).crc_valid:
        crc = google_crc32c.value(bytes(out[batch.start + CRC_FROM : batch.end]))
        out[batch.start + CRC_FROM - 4 : batch.start + CRC_FROM] = crc.to_bytes(4, "big")


def annotate_secrets(tree: Node) -> None:
    """Annotate every masked field."""
    for node in tree.walk():
        if node.secret is not None:
            node.note = "masked: --show-secrets shows it"
