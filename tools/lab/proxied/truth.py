"""A recording of the proxy held against what the brokers logged, and what was acknowledged against what is there."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import dissector
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from tools.lab import request_log
from tools.lab.logged_bodies import scalars

LOGIN: Final = frozenset(("SaslHandshake", "SaslAuthenticate"))
"""Requests that are handled before a broker logs any; ApiVersions is logged unless a login follows."""
Place = tuple[str, int, int]
"""Topic, partition, offset."""


class Held(NamedTuple):
    """What came of it."""

    equal: int
    """Exchanges that both have, equal in API, version, ids and every value of both bodies."""
    values: int
    """Values that were compared."""
    missing: list[str]
    """Exchanges that only the brokers have."""
    over: list[str]
    """Answered exchanges that only the recording has."""


def hold(path: Path, logged: Iterable[str], ports: tuple[int, ...], *, login: bool) -> Held:
    """Compare a recording with the brokers' logs of these ports. With `login`, requests up to its end are left out."""
    equal = values = 0
    missing: list[str] = []
    with Capture([str(path)], show_secrets=True) as capture:
        ours: dict[tuple[Any, ...], list[Exchange]] = defaultdict(list)
        for each in capture.exchanges():
            if each.row.kind == "exchange":
                row = each.row
                ours[each.api_key, row.version, row.correlation_id, row.client_id].append(each)
        for entry in request_log.exchanges(list(logged), ports):
            truth = request_log.condensed(entry)
            if truth.get("forwarded"):
                continue
            key = truth["api_key"], truth["version"], truth["correlation_id"], truth["client_id"]
            found = _take(ours[key], truth)
            if found:
                equal, values = equal + 1, values + found
            else:
                missing.append(f"{truth['api']} v{truth['version']} #{truth['correlation_id']} of {truth['client_id']}")
        over = [
            str(each.row)
            for left in ours.values()
            for each in left
            if each.response is not None and not (login and (each.row.api in LOGIN or each.row.api == "ApiVersions"))
        ]
    return Held(equal, values, missing, over)


def _take(candidates: list[Exchange], truth: dict[str, Any]) -> int:
    """Take the exchange that is equal to a logged one; return how many values were compared, 0 if there is none."""
    for number, each in enumerate(candidates):
        try:
            count = 1 + scalars(each.request, truth["request"], "request")
            if each.response is not None:
                count += scalars(each.response, truth["response"], "response")
        except AssertionError:
            continue
        del candidates[number]
        return count
    return 0


def acknowledged(path: Path) -> tuple[dict[Place, bytes | None], int]:
    """The records of which a broker said where they are; and how many were acknowledged without that."""
    places: dict[Place, bytes | None] = {}
    elsewhere = 0
    with dissector.open(str(path)) as capture:
        values: dict[int, dict[tuple[str | None, int | None], list[bytes | None]]] = defaultdict(
            lambda: defaultdict(list)
        )
        exchanges = {}
        for record in capture.records("api == Produce"):
            exchanges[record.exchange.number] = record.exchange
            values[record.exchange.number][record.topic, record.partition].append(record.value)
        for number, exchange in exchanges.items():
            parts = _parts(exchange.response)
            for (topic, partition), sent in values[number].items():
                base = parts.get(partition)
                if topic is None or partition is None or base is None:
                    continue
                if base < 0:
                    elsewhere += len(sent)
                    continue
                places |= {(topic, partition, base + n): value for n, value in enumerate(sent)}
    return places, elsewhere


def _parts(response: Any) -> dict[int | None, int]:
    """The offset of the first record for each partition that was accepted; tasks have one topic each."""
    if response is None:
        return {}
    return {
        each["index"]: each["base_offset"]
        for topic in response.body["responses"]
        for each in topic["partition_responses"]
        if each["error_code"] == 0
    }


def lost(places: dict[Place, bytes | None], there: dict[tuple[int, int], bytes]) -> list[Place]:
    """The acknowledged records that a topic does not have, by partition and offset."""
    return [place for place, value in places.items() if there.get(place[1:]) != value]


def apis(path: Path) -> Counter[str]:
    """How many exchanges of each API there are."""
    with dissector.open(str(path)) as capture:
        return Counter(each.api for each in capture.exchanges())
