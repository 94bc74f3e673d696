"""`kdissect FILE --web [PORT]`: the screen in a browser, for a capture on a machine where only a shell is."""

import socket
import sys
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import PurePath
from typing import Final

from dissector.cli.errors import UsageError, print_error
from dissector.cli.options import CaptureOptions, parse_filter
from dissector.cli.screen import BROWSER, STDIN
from dissector.core.text import endpoint_name, os_reason

LOOPBACK: Final = "127.0.0.1"
MISSING: Final = "--web needs textual-serve: pip install 'kafka-dissector[web]'"
OPEN_TO_OTHERS: Final = (
    "--listen {}: other machines can reach it, and HTTP is not encrypted: whoever reads the traffic, or has the "
    "address, sees the capture and types on the screen"
)


def show_in_browser(
    files: Sequence[str], port: int, listen: str | None, filter: str | None, options: CaptureOptions
) -> int:
    """Serve the screen until the user interrupts; print its address. Raises `UsageError`, and `CaptureError` if what a
    page would show can't be opened."""
    if STDIN in files:
        raise UsageError("--web can't show standard input: each page reads the capture again; save it to a file")
    try:
        from dissector.cli.web_server import MissingError, WebServer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "aiohttp":
            raise
        raise UsageError(MISSING) from None
    _try(files, filter, options)
    command = [sys.executable, "-m", "dissector", "open", *options.arguments]
    command += [] if filter is None else [f"--filter={filter}"]
    try:
        server = WebServer([*command, "--", *files], BROWSER, f"{PurePath(files[0]).name} – kdissect")
    except MissingError:
        raise UsageError(MISSING) from None
    with _bound(listen or LOOPBACK, port) as where:
        if not ip_address(where.getsockname()[0].partition("%")[0]).is_loopback:
            print_error(OPEN_TO_OTHERS.format(listen))
        print_error(f"open {server.url(where)} in a browser; ctrl+c ends it")
        server.run(where)
    return 0


def _try(files: Sequence[str], filter: str | None, options: CaptureOptions) -> None:
    """Raise now what a page could not say."""
    from dissector.cli.tables import are_tables

    if not are_tables(files, options):
        parse_filter(filter, options=options)
        options.open(files).close()


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--web {endpoint_name(host, port)}: {os_reason(error)}") from None
