"""`kdissect proxy`: the options of a proxy as its settings. What it does with what it sees is `cli/live.py`'s."""

import math
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dissector.capture.errors import CaptureError
from dissector.capture.live import RingSettings
from dissector.cli.errors import UsageError
from dissector.cli.options import BrokerTls
from dissector.core.text import clean
from dissector.proxy_server import AddressError, ListenTls, ProxySettings, UpstreamTls
from dissector.proxy_server.settings import HOLD_SECONDS

SHOW_CA: Final = "ca"
"""What stands in place of brokers to show the local CA; a broker of that name is ``ca:9092``."""
_RED: Final = "\x1b[1;31m"
_PLAIN: Final = "\x1b[0m"


def proxy_settings(
    brokers: list[str],
    listen: str,
    advertise: str,
    tls: UpstreamTls | None,
    listen_tls: ListenTls | None,
    path: str,
    ring: list[str],
    faults: tuple[tuple[str, str], ...] = (),
    *,
    is_controlled: bool = False,
    hold_seconds: float = HOLD_SECONDS,
) -> ProxySettings:
    """Return the settings of a proxy from options. Raises `UsageError`, and `CaptureError` of a ring."""
    for place, word in enumerate(brokers[1:], 1):
        if word.isidentifier() and shutil.which(word):
            command = shlex.join(brokers[place:])
            raise UsageError(f"{word} is a command: put it after --: kdissect proxy {brokers[0]} -- {command}")
    if ring and not path:
        raise UsageError("-b needs -w: the name of the ring buffer's files")
    if path == "-":
        raise UsageError("-w needs a file: rows go to standard output")
    if math.isnan(hold_seconds):  # which lies in every range
        raise UsageError("--hold-limit: nan is not a number of seconds")
    files = RingSettings.parse(ring) if ring else None
    try:
        return ProxySettings.of(
            brokers, listen, advertise, tls=tls, listen_tls=listen_tls, path=path, ring=files, faults=faults,
            is_controlled=is_controlled, hold_seconds=hold_seconds,
        )  # fmt: skip
    except AddressError as error:
        raise UsageError(str(error)) from None


def upstream_tls(asked: BrokerTls) -> UpstreamTls | None:
    """Return how to speak TLS to brokers; None without `--tls`. Raises `UsageError`."""
    files = {"--ca": asked.ca, "--cert": asked.certificate, "--key": asked.key}
    if not asked.tls:
        others = files | {"--server-name": asked.server_name, "--insecure": asked.insecure}
        if named := next((name for name, value in others.items() if value), None):
            raise UsageError(f"{named} needs --tls: to speak TLS to the brokers")
        return None
    _require_files(files)
    if asked.key and not asked.certificate:
        raise UsageError("--key needs --cert, the certificate of the key")
    if asked.insecure:
        _warn("--insecure: any certificate of a broker is taken, so whoever answers can read everything")
    return UpstreamTls(
        _absolute(asked.ca), _absolute(asked.certificate), _absolute(asked.key), asked.server_name, asked.insecure
    )


def listen_tls(certificate: str, key: str, *, tls: bool) -> ListenTls | None:
    """Return how to speak TLS to clients; None without `--listen-tls`. Raises `UsageError`."""
    files = {"--listen-cert": certificate, "--listen-key": key}
    if not tls:
        if named := next((name for name, value in files.items() if value), None):
            raise UsageError(f"{named} needs --listen-tls: to speak TLS to clients")
        return None
    _require_files(files)
    if key and not certificate:
        raise UsageError("--listen-key needs --listen-cert, the certificate of the key")
    return ListenTls(_absolute(certificate), _absolute(key))


def show_ca() -> int:
    """Print what clients must trust, and how each kind of client is told so; make the local CA if there is none."""
    from dissector.proxy_server.local_ca import ALIAS, PASSWORD, local_ca
    from dissector.proxy_server.upstream import TlsError

    try:
        ca = local_ca()
    except TlsError as error:
        raise CaptureError(str(error)) from None
    pem, jks = clean(str(ca.pem)), clean(str(ca.pem.with_name("ca.jks")))
    import_jks = (
        f"keytool -importcert -noprompt -alias {ALIAS} -file {shlex.quote(pem)} -keystore {shlex.quote(jks)} "
        f"-storetype JKS -storepass {PASSWORD}"
    )
    rows = {
        "PEM": pem,
        "PKCS#12": f"{clean(str(ca.pkcs12))} (password {PASSWORD})",
        "JKS": import_jks,
        "valid until": f"{ca.valid_until:%Y-%m-%d}",
        "Java": f"ssl.truststore.type=PEM ssl.truststore.location={pem}",
        "librdkafka": f"ssl.ca.location={pem}",
    }
    for name, value in rows.items():
        print(f"{name:<12} {value}")
    return 0


def _require_files(files: Mapping[str, str]) -> None:
    """Raise `UsageError` if a file that an option names can't be read."""
    for name, file in files.items():
        if file and not os.access(file, os.R_OK):
            reason = "can't be read" if Path(file).exists() else "no such file"
            raise UsageError(f"{name} {file}: {reason}")


def _warn(words: str) -> None:
    """Print one plain line on stderr, in red on a terminal."""
    print(f"{_RED}kdissect: {words}{_PLAIN}" if sys.stderr.isatty() else f"kdissect: {words}", file=sys.stderr)


def _absolute(file: str) -> str:
    return str(Path(file).absolute()) if file else ""
