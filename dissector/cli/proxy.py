"""`kdissect proxy`: the options of a proxy as its settings. What it does with what it sees is `cli/live.py`'s."""

import os
import sys
from pathlib import Path
from typing import Final

from dissector.capture.live import RingSettings
from dissector.cli.errors import UsageError
from dissector.proxy import AddressError, BrokerAddress, ProxySettings, UpstreamTls
from dissector.proxy.settings import LOOPBACK

_RED: Final = "\x1b[1;31m"
_PLAIN: Final = "\x1b[0m"


def proxy_settings(
    brokers: list[str], listen: str, advertise: str, tls: UpstreamTls | None, path: str, ring: list[str],
    faults: tuple[tuple[str, str], ...] = (),
) -> ProxySettings:  # fmt: skip
    """Return the settings of a proxy from options. Raises `UsageError`, and `CaptureError` of a ring."""
    try:
        parts = [part for each in brokers for part in each.split(",") if part]
        addresses = tuple(dict.fromkeys(map(BrokerAddress.parse, parts)))
        host, port = _listen_address(listen)
    except AddressError as error:
        raise UsageError(str(error)) from None
    if not addresses:
        raise UsageError("the address of a broker is missing: kdissect proxy broker.example:9092")
    if ring and not path:
        raise UsageError("-b needs -w: the name of the ring buffer's files")
    if path == "-":
        raise UsageError("-w needs a file: rows go to standard output")
    if advertise and (":" in advertise or "/" in advertise):
        raise UsageError(f"--advertise {advertise}: a host name or an IPv4 address is expected, without a port")
    if host in ("0.0.0.0", "::") and not advertise:
        raise UsageError(f"--listen {listen} needs --advertise HOST: the name by which clients reach this machine")
    files = RingSettings.parse(ring) if ring else None
    return ProxySettings(addresses, host, port, advertise, tls, path, files, faults)


def upstream_tls(
    ca: str, certificate: str, key: str, server_name: str, *, tls: bool, insecure: bool
) -> UpstreamTls | None:
    """Return how to speak TLS to brokers; None without `--tls`. Raises `UsageError`."""
    given = {"--ca": ca, "--cert": certificate, "--key": key, "--server-name": server_name, "--insecure": insecure}
    if not tls:
        if named := next((name for name, value in given.items() if value), None):
            raise UsageError(f"{named} needs --tls: to speak TLS to the brokers")
        return None
    for name, file in (("--ca", ca), ("--cert", certificate), ("--key", key)):
        if file and not os.access(file, os.R_OK):
            reason = "can't be read" if Path(file).exists() else "no such file"
            raise UsageError(f"{name} {file}: {reason}")
    if key and not certificate:
        raise UsageError("--key needs --cert: the certificate of the key")
    if insecure:
        _warn("--insecure: any certificate of a broker is taken, so whoever answers can read everything")
    return UpstreamTls(_absolute(ca), _absolute(certificate), _absolute(key), server_name, insecure)


def _warn(words: str) -> None:
    """Print one plain line on stderr, in red on a terminal."""
    print(f"{_RED}kdissect: {words}{_PLAIN}" if sys.stderr.isatty() else f"kdissect: {words}", file=sys.stderr)


def _absolute(file: str) -> str:
    return str(Path(file).absolute()) if file else ""


def _listen_address(text: str) -> tuple[str, int]:
    """Parse ``[HOST:]PORT``; nothing is loopback and any port."""
    if not text:
        return LOOPBACK, 0
    if text.isascii() and text.isdigit():
        text = f"{LOOPBACK}:{text}"
    found = BrokerAddress.parse(text, port=None)
    return found.host, found.port
