"""`docs/proxied-clients.md`, made from what is kept of the last runs: `python -m tools.lab.proxied.page`.

No broker is needed. What clients did after a fault is read from the recordings.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from dissector.core.text import duration
from tools.lab.proxied.aftermath import Aftermath, aftermath
from tools.lab.proxied.fault_recordings import fault_recording
from tools.lab.proxied.fault_rules import FAULTS, InjectedFault
from tools.lab.proxied.faults import refusal
from tools.lab.proxied.results import read_results
from tools.lab.proxied.ways import WAYS
from tools.lab.survey.clients import CLIENTS, SurveyedClient
from tools.lab.survey.recording_files import provenance_path
from tools.lab.tools import ROOT, kafka_version

MARKDOWN: Final = ROOT / "docs" / "proxied-clients.md"
RECORDS: Final = 40
IN_FLIGHT: Final = 5
"""Requests that clients have under way at most, with default settings that bound them."""
_LONGEST: Final = 100
_NOT_RUN: Final = "not run"
_INTRO: Final = f"""# Twelve clients through the proxy

The programs of [twelve clients](clients.md) run in a network namespace from which `kdissect proxy` is all that they
reach, at brokers of Kafka {kafka_version()}. `make proxied` and `make client-faults` run them again and make this
page; `make proxied-page` makes it from what is kept of the last runs. No cell is written by hand.

## Recorded, and logged

A cell has the exchanges that the proxy recorded of a client, each equal to the brokers' own request log in every
value of both bodies, and the records whose offsets the client was told, each of which is in the topic. Anything that
differs is said instead. "Lost" are records that the client was told are there, and that are not. kafka-go asks for no
acknowledgment by default (acks=0).

### One broker

100 records with keys are produced to two partitions, and consumed in a group; brokers ask for TLS where there is a
login.

"""
_THREE: Final = """
### Three brokers

Three records a second are produced and consumed; meanwhile the partition gets another leader, and a broker is stopped
and started again. What a broker answers last before it stops, it may not log.

"""
_FAULTED: Final = f"""
## After a fault

The proxy injects [one fault](proxy.md#faults) a run. A program produces {RECORDS} records to one partition, one each
20 ms, and reads them in a group, all with default settings; where its client reports an error it goes on.

What a client did next is read from the recording, which the cell links to; `#17` is the exchange in which the fault
was injected, as `kdissect show` numbers them. A retry is a request that asks for the same again: the same records,
the same offsets of the same partitions. What it was told is what the program printed: `no answer` where its client
said nothing within 150 s. What became of the records is read from the topic. Times depend on the run.

"""


def page() -> str:
    """Return all of it."""
    results = read_results()
    parts = [_INTRO, *_ways(results.get("1", {})), _THREE, *_ways(results.get("3", {}))]
    parts += [_FAULTED, *_overview()]
    for fault in FAULTS:
        parts += [f"\n### {fault.title.capitalize()}\n\n`{fault.rule}`\n\n{fault.words}\n\n"]
        parts += _table(("client", "what it did", "what its program was told", "records"), map(_row, _rows(fault)))
    return "".join(parts)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = [*head]
    yield _line(names)
    yield "|" + "---|" * len(names) + "\n"
    for row in rows:
        yield _line(row)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _ways(results: dict[str, Any]) -> Iterator[str]:
    ways = [way for way in WAYS.values() if way.name in results]

    def row(client: SurveyedClient) -> Iterator[str]:
        found = [results[way.name].get(client.name) for way in ways]
        version = next((each["version"] for each in found if each), "")
        yield client.title
        yield version
        yield from (_way_cell(each) for each in found)

    return _table(("client", "version", *(way.title for way in ways)), map(row, CLIENTS))


def _way_cell(found: dict[str, Any] | None) -> str:
    if found is None or found["refusal"]:
        return found["refusal"] if found else _NOT_RUN
    records = f"{found['acknowledged']} records" if found["acknowledged"] else "no record acknowledged"
    parts = [f"{found['equal']} exchanges", records]
    wrong = [
        f"**{found[key] if isinstance(found[key], int) else len(found[key])} {words}**"
        for key, words in (("missing", "not recorded"), ("over", "not logged"), ("lost", "lost"))
        if found[key]
    ]
    return ", ".join([*parts, *wrong, *([f"**fails**: {_code(found['failure'])}"] if found["failure"] else [])])


class _Cell:
    """A client and a fault: what is kept of it."""

    def __init__(self, client: SurveyedClient, fault: InjectedFault) -> None:
        self.client, self.fault = client, fault
        self.path = fault_recording(client.name, fault.name)
        self.refusal = refusal(client, fault) or ("" if self.path.exists() else _NOT_RUN)
        self.kept: dict[str, Any] = {}
        self.found: Aftermath | None = None
        if not self.refusal:
            self.kept = json.loads(provenance_path(self.path).read_text("utf-8"))
            self.found = aftermath(self.path, fault.api)

    @property
    def link(self) -> str:
        """To the recording, from `docs/`."""
        return f"../{self.path.relative_to(ROOT)}"

    @property
    def did(self) -> str:
        """What the client did, as the recording shows it."""
        found = self.found
        if found is None:
            return self.refusal
        if not self.kept["fired"]:
            return "no such request that gets an answer"
        if not found.hurt or found.untold:
            return "can't be told from the recording"
        if self._is_unnoticed(found):
            return "goes on behind it: takes the batch as it is"
        if "throttle" in self.fault.action:
            return _throttled(found)
        return _after(found, counts=self.fault.api == "Produce")

    def _is_unnoticed(self, found: Aftermath) -> bool:
        """Whether a batch with a wrong checksum was read like others."""
        is_read = not found.again and not self.kept["told"] and self.kept["seen"] == RECORDS
        return "corrupt" in self.fault.action and is_read

    @property
    def told(self) -> str:
        """What the program was told."""
        if not self.kept:
            return ""
        if not (told := self.kept["told"]):
            return "nothing"
        [(first, times), *others] = told
        more = f", and {len(others)} other line{'s' * (len(others) > 1)}" if others else ""
        often = f" {times} times" if 1 < times <= RECORDS else " again and again" * (times > RECORDS)
        return f"**{_code(first)}**{often}{more}"

    @property
    def records(self) -> str:
        """What became of the records."""
        if not self.kept:
            return ""
        there, twice, seen = self.kept["there"], self.kept["twice"], self.kept["seen"]
        parts = [f"{there} in the topic"]
        if (gone := RECORDS - there - self.kept["refused"]) > 0:
            parts.append(f"**{gone} lost without a word**")
        if twice:
            parts.append(f"**{twice} twice**")
        parts.append("**the program did not end**" if seen is None else f"{seen} read")
        return ", ".join(parts)

    @property
    def short(self) -> str:
        """For the overview."""
        found = self.found
        if found is None:
            return self.refusal
        text = self.did if not self.kept["fired"] or not found.hurt or found.untold else self._class(found)
        bad = [words for words in self.records.split(", ") if words.startswith("**")]
        told = ["error to the program"] if self.kept["told"] else []
        return f"[{', '.join([text, *told])}]({self.link})" + "".join(f", {words}" for words in bad)

    def _class(self, found: Aftermath) -> str:
        if "throttle" in self.fault.action:
            return _throttled(found)
        if self._is_unnoticed(found):
            return "takes it as it is"
        if found.is_unacknowledged and not found.again:
            return "asks for no answer"
        return ("again on a new connection" if found.is_elsewhere else "again") if found.again else "not again"


def _throttled(found: Aftermath) -> str:
    if found.again:
        return "sends the same records again"
    if found.held_back > IN_FLIGHT:
        return "sends on at once"
    if found.held_back:
        return f"can't be told: {found.held_back} under way when the answer came"
    return "waits" if found.behind else "can't be told: sends nothing more"


def _after(found: Aftermath, *, counts: bool) -> str:
    if found.wait_ns is None:
        return "asks for no answer, and does not send it again" if found.is_unacknowledged else "not again"
    steps = [*found.looked_up, *["a new connection"] * found.is_elsewhere]
    times = f"again, {len(found.again)} times" if counts and len(found.again) > 1 else "again"
    words = f"{', '.join([*steps, times])}, after {duration(found.wait_ns)}"
    return words + (f"; {len(found.left)} of {len(found.hurt)} not again" if found.left else "")


def _rows(fault: InjectedFault) -> Iterator[_Cell]:
    return (_Cell(client, fault) for client in CLIENTS)


def _row(cell: _Cell) -> Iterator[str]:
    did = f"{cell.did} #{cell.found.hurt[0]}" if cell.found is not None and cell.found.hurt else cell.did
    yield f"[{cell.client.title}]({cell.link})" if cell.found is not None else cell.client.title
    yield from (did, cell.told, cell.records)


def _overview() -> Iterator[str]:
    rows = ([client.title, *(_Cell(client, fault).short for fault in FAULTS)] for client in CLIENTS)
    return _table(("client", *(f"{fault.title}" for fault in FAULTS)), rows)


def _code(words: str) -> str:
    """Words of a program, of its log or of an error, as code in a table."""
    line = " ".join(words.split())
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return f"`{line.replace('|', '/').replace('`', chr(39))}`"


def write() -> Path:
    """Write the page; its path."""
    MARKDOWN.write_text(page(), encoding="utf-8")
    return MARKDOWN


if __name__ == "__main__":
    print(write())
