"""What is wrong with the TLS of a capture as a whole: key logs, records, versions, certificates, alerts.

Invariant: the counts of partitions, added, are those of the capture.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from dissector.core.finding import Finding, Severity
from dissector.core.text import clean, counted, shortened
from dissector.detection.tls_alerts import ORDINARY
from dissector.exchange.row_findings import tls_alert
from dissector.tls import KeyLogFile, TlsStage
from dissector.tls.certificates import Certificate, parse_certificate
from dissector.tls.connection import TlsConnection
from dissector.tls.handshake import version_name
from dissector.tls.key_log import KeyLogText
from dissector.tls.suites import BROKEN, suite_name, weakness
from dissector.transport.connection_table import ConnectionTable

TLS_1_2: Final = 0x0303
KEY_LOG: Final = "key-log"
"""The code of findings about key logs."""
SOON: Final = timedelta(days=30)
MOST_CERTIFICATES: Final = 5
"""Certificates that are reported."""


@dataclass
class TlsTally:
    """What is known of the TLS of a capture, or of one of its partitions, as counts."""

    key_logs: tuple[str, ...] = ()
    """Names of the key logs that have secrets."""
    captured_ns: int = 0
    """Time of the first packet."""
    shaken: int = 0
    """Connections with a ClientHello, or that began before the capture, ..."""
    known: int = 0
    """... those of them with keys, ..."""
    late: int = 0
    """... and those without keys that began before it."""
    exchanges: int = 0
    """About how many stay encrypted."""
    failure: str = ""
    """Why plaintext is not kept."""
    bad_records: int = 0
    given_up: int = 0
    """Connections whose keys were not found in time."""
    versions: Counter[int] = field(default_factory=Counter)
    suites: Counter[int] = field(default_factory=Counter)
    certificates: Counter[tuple[str, bytes]] = field(default_factory=Counter)
    """By whose they are."""
    alerts: Counter[tuple[int, bool]] = field(default_factory=Counter)
    """Encrypted ones, by number, and whether they are the client's."""
    closed_early: int = 0
    """Connections that ended without close_notify."""

    @classmethod
    def of(
        cls, tls: TlsStage, connections: ConnectionTable, captured_ns: int, key_logs: Sequence[KeyLogFile]
    ) -> "TlsTally":
        """Count what a stage has seen of a capture that was made at this time."""
        found = cls(
            tuple(clean(each.path) for each in key_logs if each.text.secrets), captured_ns, failure=tls.failure,
            bad_records=tls.bad_records, given_up=tls.late.given_up,
        )  # fmt: skip
        for number, connection in tls.connections.items():
            found._add(connection)
            if connection.is_opened:
                noticed = {alert.direction & 1 for alert in connection.alerts}
                ended = enumerate(connections.ended(number))
                found.closed_early += any(has_ended and side not in noticed for side, has_ended in ended)
        return found

    def _add(self, connection: TlsConnection) -> None:
        session = connection.session
        if connection.client_hellos or connection.is_late:
            self.shaken += 1
            self.known += connection.has_keys
            self.late += connection.is_late and not connection.has_keys
            self.exchanges += session.exchanges or 0
        if session.version_number is not None:
            self.versions[session.version_number] += 1
        if session.suite_number is not None:
            self.suites[session.suite_number] += 1
        for side, data in (("broker", session.server_certificate_data), ("client", session.client_certificate_data)):
            if data is not None:
                self.certificates[side, data] += 1
        for alert in connection.alerts:
            if alert.is_encrypted and alert.number not in ORDINARY:
                self.alerts[alert.number, alert.direction == connection.client] += 1

    def __iadd__(self, other: Self) -> Self:
        """Add what another partition counted."""
        self.failure = self.failure or other.failure
        for name in ("shaken", "known", "late", "exchanges", "bad_records", "given_up", "closed_early"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("versions", "suites", "certificates", "alerts"):
            getattr(self, name).update(getattr(other, name))
        return self

    @property
    def findings(self) -> list[Finding]:
        """What is wrong."""
        return [
            *_of_keys(self), *_of_records(self), *_of_versions(self), *_of_certificates(self), *_of_alerts(self),
            *_of_ends(self),
        ]  # fmt: skip


def problems_of_key_logs(key_logs: Sequence[KeyLogFile]) -> list[Finding]:
    """Return what is wrong with key logs, whatever was captured."""
    found = ((each, _of_text(each.text)) for each in key_logs)
    return [Finding(KEY_LOG, Severity.WARNING, f"{clean(each.path)}: {what}") for each, what in found if what]


def _of_keys(tally: TlsTally) -> Iterator[Finding]:
    if not tally.key_logs or tally.known == tally.shaken:
        return
    known, late = tally.known, tally.late
    words = f"keys of {known:,} of {counted(tally.shaken, 'TLS connection')}"
    words += f", {late:,} of them without its handshake: only TLS 1.3 is found then" if late else ""
    words += f", about {counted(tally.exchanges, 'exchange')} stay encrypted" if tally.exchanges else ""
    words += ": is it the log of this run?" if not known and not late else ""
    yield Finding(KEY_LOG, Severity.WARNING, f"{', '.join(tally.key_logs)}: {words}")


def _of_text(text: KeyLogText) -> str:
    if text.secrets:
        return "the last line is incomplete" if text.is_cut else ""
    return "not a key log: no line of it has a TLS secret" if text.bad_lines or text.is_cut else "an empty key log"


def _of_records(tally: TlsTally) -> Iterator[Finding]:
    if tally.failure:
        yield Finding("tls-not-decrypted", Severity.WARNING, f"plaintext of TLS is not kept: {tally.failure}")
    if tally.bad_records:
        words = f"{counted(tally.bad_records, 'TLS record')} not decrypted, of connections whose keys are known"
        yield Finding("tls-not-decrypted", Severity.WARNING, words)
    if tally.given_up:
        words = f"the search for the keys of {counted(tally.given_up, 'TLS connection')} without its handshake"
        yield Finding("tls-not-decrypted", Severity.WARNING, f"{words} was stopped before the whole log was tried")


def _of_versions(tally: TlsTally) -> Iterator[Finding]:
    for version, count in sorted(tally.versions.items()):
        if version < TLS_1_2:
            words = f"{counted(count, 'connection')} with {version_name(version)}, which is deprecated"
            yield Finding("tls-old", Severity.WARNING, f'{words}: tls.version == "{version_name(version)}"')
    for suite, count in sorted(tally.suites.items()):
        weak = weakness(suite)
        if weak:
            severity = Severity.WARNING if weak == BROKEN else Severity.NOTE
            words = f"{counted(count, 'connection')} with a cipher suite that {weak}"
            yield Finding("tls-old", severity, f"{words}: tls.cipher == {suite_name(suite)}")


def _of_certificates(tally: TlsTally) -> Iterator[Finding]:
    captured = datetime.fromtimestamp(tally.captured_ns // 10**9, UTC)
    yielded = 0
    for (side, data), count in sorted(tally.certificates.items()):
        certificate = parse_certificate(data)
        words = "" if certificate is None else _validity(certificate, captured)
        if certificate is not None and words and yielded < MOST_CERTIFICATES:
            whose = f"the {side}'s certificate {clean(shortened(certificate.subject))}"
            yield Finding("tls-certificate", Severity.WARNING, f"{whose} {words} ({counted(count, 'connection')})")
            yielded += 1


def _validity(certificate: Certificate, captured: datetime) -> str:
    """What is wrong with the validity of a certificate at a time."""
    if captured > certificate.valid_until:
        return f"had expired on {certificate.valid_until:%Y-%m-%d}"
    if captured < certificate.valid_from:
        return f"was not valid before {certificate.valid_from:%Y-%m-%d}"
    return f"expires on {certificate.valid_until:%Y-%m-%d}" if captured > certificate.valid_until - SOON else ""


def _of_alerts(tally: TlsTally) -> Iterator[Finding]:
    """Alerts that were encrypted: those in clear are findings of rows."""
    for (number, is_client), count in sorted(tally.alerts.items()):
        finding = tls_alert(number, is_client=is_client)
        yield replace(finding, message=f"{finding.message} ({counted(count, 'connection')})")


def _of_ends(tally: TlsTally) -> Iterator[Finding]:
    if tally.closed_early:
        words = f"{counted(tally.closed_early, 'TLS connection')} closed without close_notify"
        yield Finding("tls-closed-early", Severity.NOTE, words)
