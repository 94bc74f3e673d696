"""What a client did after a fault, read from the recording of the proxy.

An operation is known by what it is about, not by its API: the records of a Produce, the offsets from which a Fetch
reads, the offsets that an OffsetCommit keeps. So a request is a retry only if it asks for the same thing again, and
came behind the answer to the one before, if that had any; new records are none. What an operation can't be known by
stays untold.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import dissector
from dissector.capture.injection_notes import BEHIND_DROP
from dissector.proxy_server.faults.conversation import FetchSession

_LOOKED_UP: Final = ("Metadata", "FindCoordinator", "JoinGroup", "InitProducerId", "OffsetFetch", "ListOffsets")
_BACK: Final = "held back, throttled"
"""What the proxy notes of a request that a throttled client sends too soon."""
_CONSEQUENCES: Final = (_BACK, BEHIND_DROP)
"""Notes of exchanges in which no fault was injected."""
BURST_NS: Final = 5_000_000
"""What a side has sent before is recorded within so long, once it is read again."""
SOONEST_NS: Final = 300_000
"""No client reads an answer and writes a request in less, on loopback: what comes sooner was under way."""
Operations = frozenset[tuple[object, ...]]
"""What a request is about."""


class Aftermath(NamedTuple):
    """Facts of one recording. Exchanges have their numbers, from 1."""

    hurt: list[int]
    """The exchanges in which the fault was injected."""
    again: list[int]
    """Those that ask for what a hurt one asked for, once more."""
    left: list[int]
    """Hurt ones whose operations nobody asked for again, in whole or in part."""
    untold: list[int]
    """Hurt ones that can't be told from others."""
    wait_ns: int | None
    """From the first hurt request to its first retry."""
    looked_up: list[str]
    """APIs that were asked in between, each once, in their order."""
    is_elsewhere: bool
    """Whether the retry came on a connection that began after the hurt request."""
    is_unacknowledged: bool
    """Whether the hurt request asks for no response."""
    held_back: int
    """Requests that came while the client was throttled: the first waited, and those that had come behind it follow it
    at once."""
    behind: int
    """Requests on the hurt connection that came later."""


def aftermath(path: Path, api: str) -> Aftermath:
    """Read a recording with faults in requests of an API."""
    with dissector.open(str(path)) as capture:
        notes = {each.number: _notes(each) for each in capture.exchanges('finding == "injected"')}
        rows = sorted(capture.exchanges(), key=lambda each: each.number)
        records: dict[int, set[tuple[object, ...]]] = {}
        for record in capture.records("api == Produce"):
            records.setdefault(record.exchange.number, set()).add((record.topic, record.partition, record.value))
    about = dict(_operations([each for each in rows if each.api == api and each.request is not None], records))
    hurt = [each for each in rows if each.api == api and _is_hurt(notes.get(each.number, ()))]
    again: list[int] = []
    left: list[int] = []
    for each in hurt:
        wanted = about.get(each.number, frozenset())
        later = [other for other in _behind(each, rows) if about.get(other, frozenset()) & wanted]
        again += [other for other in later if other not in again]
        found = frozenset[tuple[object, ...]]().union(*(about[other] for other in later))
        if wanted and not wanted <= found:
            left.append(each.number)
    facts = _first(rows, hurt, again, about)
    held = _held_back(rows, {number for number, of in notes.items() if any(_BACK in note for note in of)})
    behind = [each for each in rows if hurt and each.connection == hurt[0].connection and each.number > hurt[0].number]
    return Aftermath(
        [each.number for each in hurt], sorted(again), left,
        [each.number for each in hurt if not about.get(each.number)], *facts,
        bool(hurt) and api == "Produce" and hurt[0].request.body["acks"] == 0, held, len(behind),
    )  # fmt: skip


def _behind(hurt: Any, rows: list[Any]) -> list[int]:
    """The exchanges that began when the client knew of the answer to a hurt one, or behind it if it never had one."""
    known_ns = hurt.time_ns + (0 if hurt.latency_ns is None else hurt.latency_ns + SOONEST_NS)
    return [each.number for each in rows if each.number > hurt.number and each.time_ns >= known_ns]


def _first(
    rows: list[Any], hurt: list[Any], again: list[int], about: Mapping[int, Operations]
) -> tuple[int | None, list[str], bool]:
    """How long it took to the first retry of the first hurt request, what was asked meanwhile, and whether it came on a
    new connection."""
    if not hurt:
        return None, [], False
    first = hurt[0]
    wanted = about.get(first.number, frozenset())
    retry = next((each for each in rows if each.number in again and about[each.number] & wanted), None)
    end = retry.number if retry is not None else rows[-1].number + 1
    between = [each for each in rows if first.number < each.number < end]
    looked_up = [*dict.fromkeys(each.api for each in between if each.api in _LOOKED_UP)]
    known = {each.connection for each in rows if each.number <= first.number}
    if retry is None:
        return None, looked_up, False
    return retry.time_ns - first.time_ns, looked_up, retry.connection not in known


def _notes(exchange: Any) -> list[str]:
    return [each.message for each in exchange.findings if each.code == "injected"]


def _held_back(rows: list[Any], noted: set[int]) -> int:
    """How many requests were held back: those with a note, and what went on right behind the last of them on its
    connection, as it had come before."""
    last = max((each for each in rows if each.number in noted), key=lambda each: each.number, default=None)
    if last is None:
        return 0
    return len(noted) + sum(
        each.connection == last.connection and each.number > last.number and each.time_ns - last.time_ns < BURST_NS
        for each in rows
    )


def _is_hurt(notes: Iterable[str]) -> bool:
    return any(all(words not in note for words in _CONSEQUENCES) for note in notes)


def _operations(
    rows: Iterable[Any], records: Mapping[int, set[tuple[object, ...]]]
) -> Iterator[tuple[int, Operations]]:
    """What each request is about; fetches with the partitions of their session."""
    sessions: dict[int, FetchSession] = {}
    for each in rows:
        body = each.request.body
        match each.api:
            case "Produce":
                found: Iterable[tuple[object, ...]] = records.get(each.number, ())
            case "Fetch":
                found = _fetched(sessions.setdefault(each.connection, FetchSession()).whole(body))
            case "OffsetCommit":
                found = _committed(body)
            case _:
                found = ()
        yield each.number, frozenset(found)


def _fetched(body: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    for topic in body["topics"]:
        for each in topic["partitions"]:
            yield each["partition"], each["fetch_offset"]


def _committed(body: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    for topic in body["topics"]:
        for each in topic["partitions"]:
            yield body["group_id"], each["partition_index"], each["committed_offset"]
