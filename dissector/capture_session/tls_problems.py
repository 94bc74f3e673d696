"""What is wrong with key logs, and with records that they should open."""

from collections.abc import Iterator, Sequence

from dissector.core.finding import Finding, Severity
from dissector.core.text import clean, counted
from dissector.tls import KeyLogFile, TlsStage


def tls_problems(tls: TlsStage, key_logs: Sequence[KeyLogFile]) -> list[Finding]:
    """Return the problems of a capture that is read."""
    return [*_of_key_logs(tls, key_logs), *_of_records(tls)]


def _of_key_logs(tls: TlsStage, key_logs: Sequence[KeyLogFile]) -> Iterator[Finding]:
    if not key_logs:
        return
    names = ", ".join(clean(each.path) for each in key_logs)
    if not len(tls.keys):
        what = "an empty key log" if not tls.keys.bad_lines else "no key log: no line of it has a secret of TLS"
        yield Finding("key-log", Severity.WARNING, f"{names}: {what}")
        return
    if tls.keys.is_cut:
        yield Finding("key-log", Severity.WARNING, f"{names}: the last line is not whole")
    shaken = [each for each in tls.connections.values() if each.client_hellos]
    known = sum(each.has_keys for each in shaken)
    if known < len(shaken):
        words = f"keys of {known:,} of {counted(len(shaken), 'TLS connection')}"
        words += ": is it the log of this run?" if not known else ""
        yield Finding("key-log", Severity.WARNING, f"{names}: {words}")


def _of_records(tls: TlsStage) -> Iterator[Finding]:
    if tls.failure:
        yield Finding("tls-not-decrypted", Severity.WARNING, f"plaintext of TLS is not kept: {tls.failure}")
    if tls.bad_records:
        words = f"{counted(tls.bad_records, 'TLS record')} not decrypted, of connections whose keys are known"
        yield Finding("tls-not-decrypted", Severity.WARNING, words)
