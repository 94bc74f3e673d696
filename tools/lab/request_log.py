"""The broker's record of requests: its request log, condensed to one JSON line an exchange.

kafka.request.logger at TRACE prints ``Completed request:{…}`` for each exchange (kafka.network.RequestChannel). Bodies
are kept as the broker printed them: records as their size only, secrets redacted. A request that a broker forwarded is
printed once more by the controller, with ``isForwarded`` and in place of the Envelope in which it crossed their
connection. Requests of a login are handled before any of this; of those the broker's authenticator tells only the name.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MARK = "Completed request:"
LOGIN = re.compile(r"Handling Kafka request (\w+) during ")
SETTLED_SECONDS = 1.0
MOST_SECONDS = 20.0
"""Several brokers never stop talking to each other."""


def settled(log: Path) -> int:
    """Waits until the broker has logged nothing for a while; the size of the log then."""
    size, since = log.stat().st_size, time.monotonic()
    end = since + MOST_SECONDS
    while time.monotonic() - since < SETTLED_SECONDS and time.monotonic() < end:
        time.sleep(0.1)
        if (now := log.stat().st_size) != size:
            size, since = now, time.monotonic()
    return size


def lines(log: Path, start: int) -> list[str]:
    """What was logged from a position of the file on, once the broker is done with it."""
    return since(log, start, settled(log))


def since(log: Path, start: int, end: int | None = None) -> list[str]:
    """What was logged from a position of the file on, up to now or to another position."""
    with log.open("rb") as file:
        file.seek(start)
        return file.read(-1 if end is None else end - start).decode().splitlines()


def exchanges(logged: list[str], ports: tuple[int, ...]) -> Iterator[dict[str, object]]:
    """The exchanges that crossed one of these ports, as the broker had them."""
    for line in logged:
        _, found, rest = line.partition(MARK)
        if found:
            entry = json.loads(rest[: rest.rindex("}") + 1])
            server = str(entry["connection"]).partition("-")[0]
            if int(server.rpartition(":")[2]) in ports:
                yield entry


def logins(logged: list[str]) -> Counter[str]:
    """How many requests of each API logins were made of; tokens without a header are not among them."""
    return Counter(found[1] for line in logged if (found := LOGIN.search(line)))


def condensed(entry: dict[str, object]) -> dict[str, object]:
    """One line of the truth."""
    header = entry["requestHeader"]
    assert isinstance(header, dict)
    forwarded = {"forwarded": True} if entry["isForwarded"] else {}
    return forwarded | {
        "connection": "-".join(str(entry["connection"]).split("-")[:2]),  # what follows differs between releases
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
