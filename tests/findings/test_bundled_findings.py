"""Every bundled capture has exactly these findings of several rows: each was looked at, and is true.

`trouble-…` show what they are called after, once. The findings of the others: the encoder joins a group in every
version; franz-go begins with an ApiVersions that the broker lacks; java-admin asks for a coordinator while the
offsets topic is made; kafka-python and sarama, configured for an old broker, use versions that it no longer has; a
controller that lost the election still gets requests; a broker shuts down on a replica's fetch.
"""

from pathlib import Path

import pytest

from dissector.findings.registry import DETECTORS
from tests.findings.conversations import troubles

pytestmark = pytest.mark.slow

EXPECTED = {
    "encoder": [(16, "slow"), (107, "rebalance-loop")],
    "franz-go": [(1, "version-stepped-down")],
    "java-admin": [(54, "error-storm")],
    "kafka-python-as-0.11": [(row, "version-not-offered") for row in (48, 55, 57, 59)],
    "kraft-quorum": [(245, "error-storm")],
    "plain-socket": [(1, "version-stepped-down")],
    "plain-socket-sasl-v0": [(17, "login-refused")],
    "sarama-1.0.0": [(row, "version-not-offered") for row in (45, 48, 54)],
    "trouble-closed-in-flight": [(1, "closed-in-flight")],
    "trouble-consumer-lag": [(16, "consumer-lag")],
    "trouble-duplicate-correlation-id": [(3, "duplicate-correlation-id")],
    "trouble-error-storm": [(10, "error-storm")],
    "trouble-everyday-error-again": [(4, "everyday-error-again")],
    "trouble-fetch-session-error": [(6, "fetch-session-error")],
    "trouble-metadata-storm": [(33, "metadata-storm")],
    "trouble-near-loss": [(9, "near-loss")],
    "trouble-oversized-request": [(1, "oversized-request")],
    "trouble-rebalance-loop": [(82, "rebalance-loop")],
    "trouble-retried-batch": [(8, "retried-batch")],
    "trouble-sequence-gap": [(9, "sequence-gap")],
    "trouble-slow": [(41, "slow")],
    "trouble-stuck-fetch": [(11, "stuck-fetch")],
    "trouble-suspect-version": [(1, "suspect-version")],
    "trouble-throttled": [(12, "throttled")],
    "trouble-tiny-batches": [(57, "tiny-batches")],
    "trouble-uncompressed-batches": [(10, "uncompressed-batches")],
    "trouble-unreadable-request": [(1, "unreadable-request")],
    "trouble-version-not-offered": [(1, "version-not-offered")],
    "two-brokers": [(186, "closed-in-flight")],
}
MISTAKES = {"login-required", "version-removed", "controller-listener"}
"""What `pcaps/mistakes` shows: tests/test_mistakes.py."""
NETWORK = {"captured-twice", "delayed-tail", "unacknowledged"}
"""What `pcaps/network` shows: tests/findings/test_network_recordings.py."""
MADE = {
    "out-of-order-response", "closed-at-api-versions", "closed-before-request", "advertised-own-host",
    "reconnect-storm", "broker-silent", "session-expired", "left-out", "closed-while-waiting", "refused-batch",
    "unusable-metadata", "wait-cut-short", "waits-behind", "injected",
}  # fmt: skip
"""What no recording shows: Kafka's brokers read a connection's next request when they have answered the one before,
and answer every ApiVersions. Kafka's own clients write valid batches and wait for less than they have patience. What a
proxy injects is in tests/proxy_server/faults."""


def test_it_has_these_findings_and_no_others(every_capture: Path) -> None:
    found = [(row, finding.code) for row, finding in troubles(str(every_capture))]
    assert found == EXPECTED.get(every_capture.stem, [])


def test_each_class_is_shown_by_a_recording_unless_none_can() -> None:
    shown = {code for rows in EXPECTED.values() for _, code in rows} | MISTAKES | NETWORK
    assert shown | MADE == {finder.explanation.code for finder in DETECTORS}
    assert not shown & MADE
