"""The broker's own word on what was said: its request log, condensed to one JSON line an exchange.

kafka.request.logger at TRACE prints ``Completed request:{…}`` for each exchange (kafka.network.RequestChannel). Bodies
are kept as the broker printed them: records as their size only, secrets redacted. Requests that the broker forwarded to
its controller are printed once more with ``isForwarded``; those did not cross the client's connection.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "Completed request:"
SETTLED_SECONDS = 1.0


def settled(log: Path) -> int:
    """Waits until the broker has logged nothing for a while; the size of the log then."""
    size, since = log.stat().st_size, time.monotonic()
    while time.monotonic() - since < SETTLED_SECONDS:
        time.sleep(0.1)
        if (now := log.stat().st_size) != size:
            size, since = now, time.monotonic()
    return size


def exchanges(log: Path, start: int, end: int) -> Iterator[dict[str, object]]:
    """The exchanges that were logged between two positions of the file, as the broker had them."""
    with log.open("rb") as file:
        file.seek(start)
        text = file.read(end - start).decode()
    for line in text.splitlines():
        _, found, rest = line.partition(MARK)
        if found:
            entry = json.loads(rest[: rest.rindex("}") + 1])
            if entry.get("listener") == "PLAINTEXT" and not entry.get("isForwarded"):
                yield entry


def condensed(entry: dict[str, object]) -> dict[str, object]:
    """One line of the truth."""
    header = entry["requestHeader"]
    assert isinstance(header, dict)
    return {
        "connection": str(entry["connection"]).rsplit("-", 2)[0],
        "api_key": header["requestApiKey"],
        "api": header["requestApiKeyName"],
        "version": header["requestApiVersion"],
        "correlation_id": header["correlationId"],
        "client_id": header.get("clientId"),
        "request": entry.get("request"),
        "response": entry.get("response"),
    }


def write(path: Path, entries: list[dict[str, object]]) -> None:
    """One JSON line an exchange, in the order of the log."""
    with path.open("w") as file:
        for entry in entries:
            file.write(json.dumps(condensed(entry), separators=(",", ":")) + "\n")
