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

The programs of [twelve clients](clients.md) run in a network namespace from which they can reach only `kdissect
proxy`, with brokers of Kafka {kafka_version()} behind it. `make proxied` and `make client-faults` run them again
and make this page; `make proxied-page` makes it from the saved results of the last runs.

## Recorded, and logged

A cell counts the exchanges that the proxy recorded for a client, and the records for which the client got an
offset. Each exchange equals the brokers' own request log in every value of both bodies, and each record is in the
topic. If anything differs, the cell says so. "Lost" records were acknowledged but are not in the topic. By default,
kafka-go requests no acknowledgment (acks=0).

### One broker

The program produces 100 records with keys to two partitions and consumes them in a group. Brokers require TLS where
there is a login.

"""
_THREE: Final = """
### Three brokers

The program produces and consumes three records per second. In the meantime, the partition gets another leader, and a
broker is stopped and started again. A broker may not log its last answers before it stops. Of Java 4.3, librdkafka
2.16, kafka-python and franz-go, the results of mutual TLS and the three logins were restored from what their run
printed.

"""
_FAULTED: Final = f"""
## After a fault

The proxy injects [one fault](proxy.md#faults) per run. A program produces {RECORDS} records to one partition, one
every 20 ms, and reads them in a group, with default settings. If its client reports an error, the program
continues.

The recording, to which the cell links, shows what a client did next. `#17` is the number, in `kdissect show`, of
the exchange with the injected fault. A retry is a request for the same thing: the same records, or the same offsets
of the same partitions. "What the client reported" is what the program printed: `no answer` means that its client
reported nothing within 150 s. The counts of records come from the topic. Times vary from run to run.

"""


def page() -> str:
    """Return all of it."""
    parts = [recorded(), _FAULTED, *_overview()]
    for fault in FAULTS:
        parts += [f"\n### {fault.title.capitalize()}\n\n`{fault.rule}`\n\n{fault.words}\n\n"]
        parts += _table(
            ("client", "what the client did", "what the client reported", "records"), map(_row, _rows(fault))
        )
    return "".join(parts)


def recorded() -> str:
    """Return its beginning, which needs no recording: what was recorded of each client, as the results say."""
    results = read_results()
    return "".join((_INTRO, *_ways(results.get("1", {})), _THREE, *_ways(results.get("3", {}))))


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
            return "sends no such request with an answer"
        if not found.hurt or found.untold:
            return "the recording does not show it"
        if self._is_unnoticed(found):
            return "accepts the batch and continues after it"
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
        often = f" {times} times" if 1 < times <= RECORDS else " repeatedly" * (times > RECORDS)
        return f"**{_code(first)}**{often}{more}"

    @property
    def records(self) -> str:
        """What became of the records."""
        if not self.kept:
            return ""
        there, twice, seen = self.kept["there"], self.kept["twice"], self.kept["seen"]
        parts = [f"{there} in the topic"]
        if (gone := RECORDS - there - self.kept["refused"]) > 0:
            parts.append(f"**{gone} lost silently**")
        if twice:
            parts.append(f"**{twice} duplicated**")
        parts.append("**the program never ended**" if seen is None else f"{seen} read")
        return ", ".join(parts)

    @property
    def short(self) -> str:
        """For the overview."""
        found = self.found
        if found is None:
            return self.refusal
        text = self.did if not self.kept["fired"] or not found.hurt or found.untold else self._class(found)
        bad = [words for words in self.records.split(", ") if words.startswith("**")]
        told = ["reports an error"] if self.kept["told"] else []
        return f"[{', '.join([text, *told])}]({self.link})" + "".join(f", {words}" for words in bad)

    def _class(self, found: Aftermath) -> str:
        if "throttle" in self.fault.action:
            return _throttled(found)
        if self._is_unnoticed(found):
            return "accepts the batch"
        if found.is_unacknowledged and not found.again:
            return "requests no answer"
        return ("retries on a new connection" if found.is_elsewhere else "retries") if found.again else "does not retry"


def _throttled(found: Aftermath) -> str:
    if found.again:
        return "sends the same records again"
    if found.held_back > IN_FLIGHT:
        return "does not wait"
    if found.held_back:
        return f"unclear: {found.held_back} in flight when the answer came"
    return "waits" if found.behind else "unclear: sends nothing more"


def _after(found: Aftermath, *, counts: bool) -> str:
    if found.wait_ns is None:
        return "requests no answer, does not retry" if found.is_unacknowledged else "does not retry"
    steps = [*found.looked_up, *["a new connection"] * found.is_elsewhere]
    times = f"{len(found.again)} retries" if counts and len(found.again) > 1 else "retry"
    words = f"{', '.join([*steps, times])}, after {duration(found.wait_ns)}"
    return words + (f"; {len(found.left)} of {len(found.hurt)} not retried" if found.left else "")


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
