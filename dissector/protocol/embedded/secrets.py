"""What would let somebody else in: which fields hold it, and a frame without it.

A secret's bytes become asterisks, as many as there were, before anybody looks at the frame: so no face (text, tree,
bytes, JSON, an export) can show it, and everything keeps its place. What is left says how long the secret is.
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
"""By message. A config's value is one where its name says so. Tokens of logins are marked by `sasl`."""

SECRET_CARRIERS: Final = frozenset(
    ("SaslAuthenticateRequest", "SaslAuthenticateResponse", "EnvelopeRequest", "EnvelopeResponse")
)
"""Messages with secrets inside their bytes fields."""
METADATA_CARRIERS: Final = frozenset(("FetchResponse", "FetchSnapshotResponse"))
"""Messages that may have the metadata log's records."""
_METADATA_LOG: Final = (b"__cluster_metadata", bytes(15) + b"\x01")
"""The log's name, and its topic id."""
_SECRET_CONFIG: Final = re.compile(r"password|secret|jaas|keystore\.key|credential|private", re.IGNORECASE)
MASK: Final = b"*"


def mark_secret(leaf: Node, struct: Node) -> None:
    """Mark a field's content, unless it is the value of a config with a harmless name."""
    name = next((each.value for each in struct.children if each.name in ("name", "config_name")), None)
    if leaf.name == "value" and not _SECRET_CONFIG.search(str(name)):
        return
    size = len(leaf.value.encode("utf-8", "surrogateescape")) if isinstance(leaf.value, str) else 0
    size = len(leaf.value) if isinstance(leaf.value, bytes) else size
    leaf.secret = (leaf.end - size, leaf.end) if size else None


def may_hold_secrets(message: str | None, data: bytes) -> bool:
    """Whether a frame is worth a look."""
    if message in METADATA_CARRIERS:
        return any(mark in data for mark in _METADATA_LOG)
    return message in SECRET_FIELDS or message in SECRET_CARRIERS


def masked(data: bytes, tree: Node) -> bytes:
    """A frame with its secrets masked. A batch that had one gets the checksum that it then has, so as not to look
    damaged."""
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
    """Say of every masked field that it is."""
    for node in tree.walk():
        if node.secret is not None:
            node.note = "masked: --show-secrets shows it"
