"""What the page says of each client: sections, each about one scenario, with facts that exchanges prove.

A fact is a function of a recording. Where the matrix of `kdissect diff` has a line for it, the fact has its text.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from dissector.core.text import clean, duration, size
from tools.lab.survey.recording import Recording, SeenExchange

NOTHING = "-"
GROUP_APIS = ("FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch",
              "ConsumerGroupHeartbeat")  # fmt: skip
MOST_ERRORS = 4


class Proof(NamedTuple):
    """What a cell says, and the number of the exchange that proves it; 0 for what none can prove."""

    text: str
    number: int = 0
    link: str = ""
    """A file that the text leads to, where it is another one than that of the row."""


class Fact(NamedTuple):
    """A column: its heading, and what a recording says."""

    heading: str
    of: Callable[[Recording], Proof]


class Section(NamedTuple):
    """A table: the scenario whose recordings it is made from, its columns."""

    title: str
    scenario: str
    words: str
    facts: tuple[Fact, ...]


def _first(exchanges: Iterable[SeenExchange]) -> int:
    return next((each.number for each in exchanges), 0)


def line(name: str, *apis: str, heading: str = "") -> Fact:
    """What a line of the matrix says, proved by the first exchange of the first of these APIs that is there."""

    def of(recording: Recording) -> Proof:
        text = recording.behavior.get(name, NOTHING)
        number = next(filter(None, (_first(recording.of(api)) for api in apis)), 0)
        return Proof(text, number) if text != NOTHING else Proof(NOTHING)

    return Fact(heading or name, of)


def version(api: str) -> Fact:
    """The versions of an API that were asked."""

    def of(recording: Recording) -> Proof:
        found = recording.of(api)
        return Proof(", ".join(f"v{n}" for n in sorted({each.version for each in found})) or NOTHING, _first(found))

    return Fact(api, of)


def _in_flight(recording: Recording) -> Proof:
    """The most Produce requests of one connection that waited for their responses at one time."""
    waiting: dict[int, list[int]] = {}
    most = Proof(NOTHING)
    count = 0
    for each in recording.of("Produce"):
        ends = [end for end in waiting.get(each.connection, []) if end > each.time_ns]
        waiting[each.connection] = [*ends, each.end_ns or each.time_ns + 1]
        if len(ends) + 1 > count:
            count = len(ends) + 1
            most = Proof(f"{count}", each.number)
    return most


def _largest(recording: Recording) -> Proof:
    found = recording.of("Produce")
    if not found:
        return Proof(NOTHING)
    largest = max(found, key=lambda each: each.exchange.fields.request_size or 0)
    return Proof(size(largest.exchange.fields.request_size or 0), largest.number)


def errors_of(*apis: str) -> Fact:
    """The errors of these APIs that the client lived with, and how often; no API for all."""

    def of(recording: Recording) -> Proof:
        found = [each for each in recording.exchanges if each.error and (not apis or each.api in apis)]
        counts = Counter(each.error for each in found).most_common()
        texts = [f"{error} ({count})" if count > 1 else error for error, count in counts[:MOST_ERRORS]]
        if len(counts) > MOST_ERRORS:
            texts.append(f"{len(counts) - MOST_ERRORS} more")
        return Proof(", ".join(texts) or "none", _first(found))

    return Fact(f"errors of {', '.join(apis)}" if apis else "errors in responses", of)


def _unanswered(recording: Recording) -> Proof:
    found = [each for each in recording.exchanges if not each.is_answered]
    apis = Counter(each.api for each in found)
    return Proof(
        ", ".join(f"{api} ({n})" if n > 1 else api for api, n in sorted(apis.items())) or "none", _first(found)
    )


def _silence(recording: Recording) -> Proof:
    """From the last response before the longest pause of all responses to the next request on a new connection."""
    answered = sorted((each for each in recording.exchanges if each.end_ns), key=lambda each: each.end_ns)
    if len(answered) < 2:
        return Proof(NOTHING)
    before, after = max(pairwise(answered), key=lambda pair: pair[1].end_ns - pair[0].end_ns)
    return Proof(duration(after.end_ns - before.end_ns), after.number)


def _refused(recording: Recording) -> Proof:
    """Connections that nobody accepted, and the pauses between the attempts; the exchange is the next one."""
    connections = recording.capture.connections
    used = {each.connection for each in recording.exchanges}
    numbers = (number for number in range(1, len(connections) + 1) if number not in used)
    times = [time for number in numbers if (time := connections.first_time_ns(number)) is not None]
    if len(times) < 2:
        return Proof(f"{len(times)}" if times else "none")
    pauses = [after - before for before, after in pairwise(times)]
    text = f"{len(times)}; pauses: median {duration(round(median(pauses)))}, longest {duration(max(pauses))}"
    return Proof(text, _first(each for each in recording.exchanges if each.time_ns > times[-1]))


def _connections(recording: Recording) -> Proof:
    return Proof(f"{len({each.connection for each in recording.exchanges})}", _first(recording.exchanges))


def backoff(api: str) -> Fact:
    """From a response with an error to the next request of the same API on the connection, or on any other."""

    def of(recording: Recording) -> Proof:
        found = recording.of(api)
        waits = [
            (after.time_ns - before.end_ns, after.number)
            for before, after in pairwise(found)
            if before.error and before.end_ns and after.time_ns >= before.end_ns
        ]
        if not waits:
            return Proof(NOTHING)
        middle = median(wait for wait, _ in waits)
        return Proof(duration(round(middle)), waits[0][1])

    return Fact(f"back-off of {api}", of)


def count(api: str, heading: str = "") -> Fact:
    """How many requests of an API there are."""

    def of(recording: Recording) -> Proof:
        found = recording.of(api)
        return Proof(f"{len(found)}" if found else NOTHING, _first(found))

    return Fact(heading or f"{api} requests", of)


def interval(api: str, heading: str) -> Fact:
    """The median time from a request of an API that succeeded to the next on its connection. A member that joins again
    in between starts to count anew."""

    def of(recording: Recording) -> Proof:
        by_connection: dict[int, list[SeenExchange]] = {}
        for each in recording.exchanges:
            if each.api in (api, "JoinGroup"):
                by_connection.setdefault(each.connection, []).append(each)
        found = [
            (a, b)
            for each in by_connection.values()
            for a, b in pairwise(each)
            if a.api == b.api == api and not a.error
        ]
        if not found:
            return Proof(NOTHING)
        return Proof(duration(round(median(b.time_ns - a.time_ns for a, b in found))), _first(a for a, _ in found))

    return Fact(heading, of)


def _login_attempts(recording: Recording) -> Proof:
    found = recording.of("SaslAuthenticate") or [each for each in recording.exchanges if each.error]
    return Proof(f"{len(found)}" if found else NOTHING, _first(found))


def _login_pause(recording: Recording) -> Proof:
    found = recording.of("SaslAuthenticate")
    gaps = [(after.time_ns - before.time_ns, after.number) for before, after in pairwise(found)]
    if not gaps:
        return Proof("gives up after one" if found else NOTHING, _first(found))
    return Proof(", ".join(duration(gap) for gap, _ in gaps[:4]) + (", …" if len(gaps) > 4 else ""), gaps[0][1])


def _after_move(recording: Recording) -> Proof:
    """What follows the first error of a moved leader: how long until the next Metadata request."""
    moved = [each for each in recording.exchanges if each.error in {"NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"}]
    if not moved:
        return Proof(NOTHING)
    later = [each for each in recording.of("Metadata") if each.time_ns >= moved[0].end_ns]
    return Proof(duration(later[0].time_ns - moved[0].end_ns), later[0].number) if later else Proof("does not ask")


def _new_leader(recording: Recording) -> Proof:
    """From the first error of a Produce request to the next one without."""
    found = recording.of("Produce")
    failed = [each for each in found if each.error]
    if not failed:
        return Proof(NOTHING)
    done = [each for each in found if not each.error and each.time_ns >= failed[0].end_ns]
    return Proof(duration(done[0].end_ns - failed[0].end_ns), done[0].number) if done else Proof("never")


SECTIONS = (
    Section("Versions", "plain", "The versions of each API that the client uses with a Kafka 4.3 broker.", (
        *map(version, ("ApiVersions", "Metadata", "Produce", "Fetch", "ListOffsets", *GROUP_APIS[:-1],
                       "InitProducerId")),)),
    Section("Producing, defaults", "plain", "What a producer does with default settings.", (
        line("acks", "Produce"), line("idempotence", "InitProducerId", "Produce"), line("compression", "Produce"),
        line("batches", "Produce"), line("batch size", "Produce"), line("produce timeout (ms)", "Produce"))),
    Section("Consuming, defaults", "plain", "What a consumer does with default settings.", (
        line("fetch max wait (ms)", "Fetch"), line("fetch min bytes", "Fetch"), line("fetch max bytes", "Fetch"),
        line("fetch partition max", "Fetch"), line("fetch sessions", "Fetch"), line("isolation level", "Fetch"),
        line("topic ids in requests", "Fetch"), count("OffsetCommit"))),
    Section("Metadata and connections", "plain", "What the client requests before it starts to work, and how often.", (
        line("metadata requests", "Metadata"), line("auto topic creation", "Metadata"),
        line("connections", "ApiVersions", "Metadata"), Fact("unanswered", _unanswered), count("ApiVersions"))),
    Section("Idempotent producer", "idempotent", "100 records, with idempotence enabled.", (
        version("InitProducerId"), line("acks", "Produce"), line("batches", "Produce"),
        line("connections", "ApiVersions"))),
    Section("Transactions", "transactional", "Three transactions: committed, aborted, committed. A consumer reads the"
            " committed records.", (
        *map(version, ("InitProducerId", "AddPartitionsToTxn", "EndTxn")),
        line("transaction timeout (ms)", "InitProducerId"), count("Produce"), errors_of())),
    Section("Classic groups", "group-classic", "A second member joins and leaves.", (
        line("assignors", "JoinGroup"), line("session timeout (ms)", "JoinGroup"),
        line("rebalance timeout (ms)", "JoinGroup"), interval("Heartbeat", "heartbeat interval"),
        count("JoinGroup", "joins"), errors_of("Heartbeat", "JoinGroup", "SyncGroup", "OffsetCommit"),
        line("shutdown", "LeaveGroup"))),
    Section("Groups of KIP-848", "group-kip848", "The same, with the protocol of KIP-848.", (
        version("ConsumerGroupHeartbeat"), interval("ConsumerGroupHeartbeat", "heartbeat interval"),
        version("OffsetCommit"), errors_of(), count("ConsumerGroupHeartbeat"))),
    Section("Codecs", "compression", "Each codec that the client supports.", (
        line("compression", "Produce"), line("batches", "Produce"), line("batch size", "Produce"))),
    Section("Large batches", "large-batches", "100 records of 5 kB at once, with default limits.", (
        line("batches", "Produce"), line("batch size", "Produce"), Fact("largest request", _largest),
        Fact("in flight", _in_flight), count("Fetch"))),
    Section("A slow broker", "slow-broker", "One record every 20 ms; every response is 300 ms late.", (
        Fact("in flight", _in_flight), line("batches", "Produce"), line("batch size", "Produce"),
        line("observed linger", "Produce"), Fact("connections", _connections))),
    Section("A broker is restarted", "broker-restarted", "What the client survives, and when it continues. The"
            " broker is down for 10 to 25 s.", (
        Fact("unanswered", _unanswered), errors_of(), Fact("refused connections", _refused),
        Fact("longest silence", _silence),
        Fact("connections", _connections), count("Metadata"))),
    Section("A leader is moved", "leader-moved", "The partition's leader moves to another broker; a response may name"
            " the new leader (KIP-951).", (
        errors_of("Produce"), errors_of("Fetch"), backoff("Produce"), backoff("Fetch"),
        Fact("asks for metadata after", _after_move),
        Fact("produces again after", _new_leader), count("Metadata"))),
    Section("A login is refused", "auth-refused", "The password for SASL PLAIN is wrong. The program waits at most"
            " 8 s.", (
        version("SaslHandshake"), version("SaslAuthenticate"), Fact("attempts", _login_attempts),
        Fact("time between attempts", _login_pause), Fact("connections", _connections))),
)  # fmt: skip


def cell(fact: Fact, recording: Recording) -> Proof:
    """What a recording says, as text for a page."""
    found = fact.of(recording)
    return found._replace(text=clean(found.text))
