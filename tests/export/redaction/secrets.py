"""What must not be left of a capture: every string and every run of bytes that a person or a program put into it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage

LEAST: Final = 4
"""Bytes: shorter ones stand anywhere by chance."""
KEPT: Final = """
    127.0.0.1 /127.0.0.1 localhost 4096 biws User client-id CONTROLLER PLAINTEXT Share Streams classic consumer share
    streams Empty Stable CompleteAbort CompleteCommit CRAM-SHA1 OAUTHBEARER PLAIN SCRAM-SHA-256 SCRAM-SHA-512
    RoundRobinAssigner cooperative-sticky range roundrobin simple
    __cluster_metadata __consumer_offsets __share_group_state __transaction_state
    apache-kafka-java confluent-kafka-python kafka-python kdissect sarama 2.16.1-rdkafka-2.16.0 3.0.12 3.9.2 4.3.1
    v1.22.2 v1.61.1
    eligible.leader.replicas.version group.version kraft.version metadata.version share.version streams.version
    transaction.version
    cleanup.policy compression.type delete.retention.ms file.delete.delay.ms flush.messages flush.ms
    index.interval.bytes local.retention.bytes local.retention.ms max.compaction.lag.ms max.message.bytes
    message.format.version message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas
    preallocate remote.storage.enable retention.bytes retention.ms segment.bytes segment.index.bytes segment.jitter.ms
    segment.ms unclean.leader.election.enable
"""
"""Kafka's own words that the bundled captures have, looked through one by one: they may stay, or parts of them."""
LOOPBACK: Final = bytes((127, 0, 0, 1))


def must_go(path: Path) -> set[bytes]:
    """All of a capture that is nobody else's business."""
    found: set[bytes] = set()
    with Capture([str(path)], show_secrets=True) as capture:
        for message in messages(capture):
            found |= set(contents(message))
    return {each for each in found if not _is_harmless(each)}


def messages(capture: Capture) -> Iterator[ExchangeMessage]:
    for exchange in capture.exchanges():
        yield from filter(None, (exchange.request, exchange.response))


def contents(message: ExchangeMessage) -> Iterator[bytes]:
    """What its strings and its bytes hold, but for ids that are text for people alone, and what is looked into."""
    for node in message.tree.walk():
        if not node.children and node.type not in ("UUID", "LENGTH") and node.name != "(compressed)":
            if isinstance(node.value, str):
                words, raw = node.value.encode("utf-8", "surrogateescape"), message.sources[node.source].data
                yield words if words in raw else raw[node.start : node.end]  # claims of a login stand in base64
            elif isinstance(node.value, bytes):
                yield node.value


def _is_harmless(content: bytes) -> bool:
    too_plain = len(content) < LEAST or len(set(content)) < 3
    return too_plain or content in KEPT.encode() or content == LOOPBACK


def all_bytes(path: Path) -> bytes:
    """A capture's file, and all that is compressed in it."""
    parts = [path.read_bytes()]
    with Capture([str(path)], show_secrets=True) as capture:
        for message in messages(capture):
            parts += [source.data for source in message.sources[1:]]
    return bytes(LEAST).join(parts)
