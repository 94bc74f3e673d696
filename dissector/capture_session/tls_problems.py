"""What is wrong with the TLS of a capture as a whole: key logs, records, versions, certificates, alerts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from dissector.core.finding import Finding, Severity
from dissector.core.text import clean, counted, shortened
from dissector.detection.tls_alerts import ORDINARY
from dissector.exchange.row_findings import tls_alert
from dissector.tls import KeyLogFile, TlsStage
from dissector.tls.certificates import Certificate, parse_certificate
from dissector.tls.handshake import version_name
from dissector.tls.key_log import KeyLogText
from dissector.tls.suites import BROKEN, suite_name, weakness
from dissector.transport.connection_table import ConnectionTable

TLS_1_2: Final = 0x0303
SOON: Final = timedelta(days=30)
MOST_CERTIFICATES: Final = 5
"""Certificates that are told of."""


def problems_of_key_logs(tls: TlsStage, key_logs: Sequence[KeyLogFile]) -> list[Finding]:
    """Return what is wrong with key logs, and with records that they should open."""
    return [*_of_key_logs(tls, key_logs), *_of_records(tls)]


def problems_of_sessions(tls: TlsStage, connections: ConnectionTable, captured_ns: int) -> list[Finding]:
    """Return what is wrong with the TLS of connections of a capture that was made at this time."""
    return [*_of_versions(tls), *_of_certificates(tls, captured_ns), *_of_alerts(tls), *_of_ends(tls, connections)]


def _of_key_logs(tls: TlsStage, key_logs: Sequence[KeyLogFile]) -> Iterator[Finding]:
    if not key_logs:
        return
    for each in key_logs:
        what = _of_text(each.text)
        if what:
            yield Finding("key-log", Severity.WARNING, f"{clean(each.path)}: {what}")
    if not any(each.text.secrets for each in key_logs):
        return
    names = ", ".join(clean(each.path) for each in key_logs if each.text.secrets)
    shaken = [each for each in tls.connections.values() if each.client_hellos or each.is_late]
    known = sum(each.has_keys for each in shaken)
    if known < len(shaken):
        exchanges = sum(each.session.exchanges or 0 for each in shaken)
        late = sum(each.is_late and not each.has_keys for each in shaken)
        words = f"keys of {known:,} of {counted(len(shaken), 'TLS connection')}"
        words += f", {late:,} of them without its handshake: only TLS 1.3 is found then" if late else ""
        words += f", about {counted(exchanges, 'exchange')} stay encrypted" if exchanges else ""
        words += ": is it the log of this run?" if not known and not late else ""
        yield Finding("key-log", Severity.WARNING, f"{names}: {words}")


def _of_text(text: KeyLogText) -> str:
    if text.secrets:
        return "the last line is not whole" if text.is_cut else ""
    return "no key log: no line of it has a secret of TLS" if text.bad_lines or text.is_cut else "an empty key log"


def _of_records(tls: TlsStage) -> Iterator[Finding]:
    if tls.failure:
        yield Finding("tls-not-decrypted", Severity.WARNING, f"plaintext of TLS is not kept: {tls.failure}")
    if tls.bad_records:
        words = f"{counted(tls.bad_records, 'TLS record')} not decrypted, of connections whose keys are known"
        yield Finding("tls-not-decrypted", Severity.WARNING, words)
    if tls.late.given_up:
        words = f"the search for the keys of {counted(tls.late.given_up, 'TLS connection')} without its handshake"
        yield Finding("tls-not-decrypted", Severity.WARNING, f"{words} was ended before all of the log was tried")


def _of_versions(tls: TlsStage) -> Iterator[Finding]:
    sessions = [each.session for each in tls.connections.values()]
    versions = Counter(each.version_number for each in sessions)
    for version, count in sorted((version, count) for version, count in versions.items() if version is not None):
        if version < TLS_1_2:
            words = f"{counted(count, 'connection')} with {version_name(version)}, which is deprecated"
            yield Finding("tls-old", Severity.WARNING, f'{words}: tls.version == "{version_name(version)}"')
    suites = Counter(each.suite_number for each in sessions)
    for suite, count in sorted((suite, count) for suite, count in suites.items() if suite is not None):
        weak = weakness(suite)
        if weak:
            severity = Severity.WARNING if weak == BROKEN else Severity.NOTE
            words = f"{counted(count, 'connection')} with a cipher suite that {weak}"
            yield Finding("tls-old", severity, f"{words}: tls.cipher == {suite_name(suite)}")


def _of_certificates(tls: TlsStage, captured_ns: int) -> Iterator[Finding]:
    captured = datetime.fromtimestamp(captured_ns // 10**9, UTC)
    found: dict[tuple[str, bytes], int] = {}
    for each in tls.connections.values():
        session = each.session
        for side, data in (("broker", session.server_certificate_data), ("client", session.client_certificate_data)):
            if data is not None:
                found[side, data] = found.get((side, data), 0) + 1
    yielded = 0
    for (side, data), count in found.items():
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


def _of_alerts(tls: TlsStage) -> Iterator[Finding]:
    """Alerts that were encrypted: those in clear are findings of rows."""
    found: Counter[tuple[int, bool]] = Counter()
    for connection in tls.connections.values():
        for alert in connection.alerts:
            if alert.is_encrypted and alert.number not in ORDINARY:
                found[alert.number, alert.direction == connection.client] += 1
    for (number, is_client), count in found.items():
        finding = tls_alert(number, is_client=is_client)
        yield replace(finding, message=f"{finding.message} ({counted(count, 'connection')})")


def _of_ends(tls: TlsStage, connections: ConnectionTable) -> Iterator[Finding]:
    count = 0
    for number, connection in tls.connections.items():
        if connection.is_opened:
            noticed = {alert.direction & 1 for alert in connection.alerts}
            count += any(ended and side not in noticed for side, ended in enumerate(connections.ended(number)))
    if count:
        words = f"{counted(count, 'TLS connection')} closed without close_notify"
        yield Finding("tls-closed-early", Severity.NOTE, words)
