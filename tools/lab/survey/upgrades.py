"""`docs/upgrades.md`, made from the recordings: what changes on the wire when a client is upgraded.

`python -m tools.lab.survey.upgrades`. A row is a difference that `kdissect diff OLD NEW` finds, in whichever scenarios.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from dissector.analysis.diff import DiffEntry, DiffReason, DiffSide, diff
from dissector.analysis.diff.formatting import name_sides
from dissector.analysis.diff.group_consequences import has_all_values
from dissector.analysis.diff.key_differences import ELEMENTS
from dissector.analysis.diff.ranking import area_of
from dissector.analysis.diff.report import entry_name
from dissector.capture_session import Capture
from dissector.core.text import clean
from tools.lab.survey.clients import SurveyedClient
from tools.lab.survey.earlier import EARLIER_SCENARIOS, EVERY_CLIENT
from tools.lab.survey.recording_files import recording_path
from tools.lab.survey.scenarios import SCENARIOS
from tools.lab.tools import ROOT

MARKDOWN = ROOT / "docs" / "upgrades.md"
INTRO = """# What an upgrade changes on the wire

Two releases of a client do the same work with a Kafka 4.3.1 broker, and `kdissect diff OLD NEW` lists the differences.
All settings are defaults, so these changes affect everyone who upgrades and sets nothing. Each row names the exchanges
that prove it: `plain #12/#14` is exchange 12 in the older release's recording `plain` and exchange 14 in the newer
one's, both in `pcaps/clients/`. `make clients-page` makes this page from the recordings."""


NUMBERS: Final = (DiffReason.COUNT, DiffReason.RATE, DiffReason.ONE_SIDE, DiffReason.UNANSWERED)
"""Differences of numbers, which vary with the scenario: the first one stands for all."""


_NAMES: Final = re.compile(r" for (group )?billing-[^ ,]+")
"""The groups of the survey."""


class Upgrade(NamedTuple):
    """Two releases of a client."""

    older: SurveyedClient
    newer: SurveyedClient


class Change(NamedTuple):
    """What differs, in the words of `diff`; equal ones of several scenarios are one."""

    area: str
    subject: str
    older: str
    newer: str


def upgrades() -> Iterator[Upgrade]:
    """Each release of the survey that has a newer one, if both are recorded."""
    names = {client.name: client for client in EVERY_CLIENT}
    found = (Upgrade(client, names[client.newer]) for client in EVERY_CLIENT if client.newer)
    return (each for each in found if any(pairs(each)))


def pairs(upgrade: Upgrade) -> Iterator[tuple[str, Path, Path]]:
    """The scenarios of earlier releases in which both are recorded, and the recordings; without that in which something
    happens to the client."""
    for scenario in (each for each in SCENARIOS if each.name in EARLIER_SCENARIOS and each.event is None):
        older, newer = (recording_path(client.name, scenario.name) for client in upgrade)
        if older.exists() and newer.exists():
            yield scenario.name, older, newer


def changes(upgrade: Upgrade) -> dict[Change, list[tuple[str, DiffEntry]]]:
    """What differs between two releases, and the scenario and the entry of each time that it does."""
    found: dict[Change, list[tuple[str, DiffEntry]]] = {}
    for scenario, older, newer in pairs(upgrade):
        with Capture([str(older)]) as a, Capture([str(newer)]) as b:
            for side in (a, b):
                for _ in side.read():
                    pass
            for entry in diff(DiffSide(a, "A"), DiffSide(b, "B")).entries:
                if entry.reason is DiffReason.CONTENT:
                    continue  # Connect's records have the run's ids in them
                subject = _NAMES.sub("", " ".join(filter(None, (entry.api, entry_name(entry)))))
                texts = ("", "") if entry.reason in NUMBERS else (entry.a, entry.b)
                change = Change(area_of(entry).value, subject, *texts)
                found.setdefault(change, []).append((scenario, entry))
    return _joined(found)


def _joined(found: dict[Change, list[tuple[str, DiffEntry]]]) -> dict[Change, list[tuple[str, DiffEntry]]]:
    """Join the changes of a field whose values a scenario with more of them has as well: what each says is the same."""
    out: dict[Change, list[tuple[str, DiffEntry]]] = {}
    for change, entries in sorted(found.items(), key=lambda each: -len(each[0].older) - len(each[0].newer)):
        same = next((more for more in out if _covers(more, change)), change)
        out.setdefault(same, []).extend(entries)
    return out


def _covers(one: Change, other: Change) -> bool:
    return one[:2] == other[:2] and has_all_values(one.older, other.older) and has_all_values(one.newer, other.newer)


def markdown(chosen: Iterable[Upgrade]) -> str:
    """The page, with these upgrades."""
    parts = [INTRO]
    for upgrade in chosen:
        parts += ["", *_section(upgrade)]
    return "".join(f"{part}\n" for part in parts)


def _section(upgrade: Upgrade) -> Iterator[str]:
    older, newer = upgrade
    yield f"## {older.title} to {'.'.join(newer.version.split('.')[: older.title.count('.') + 1])}"
    yield ""
    found = changes(upgrade)
    if not found:
        yield "No difference."
        return
    yield "| | what | older | newer | set by | proof |"
    yield "|---|---|---|---|---|---|"
    for change, entries in sorted(found.items()):
        yield _row(change, entries)


def _row(change: Change, entries: list[tuple[str, DiffEntry]]) -> str:
    entry = entries[0][1]
    explanation = name_sides(entry.explanation.removeprefix(ELEMENTS).removeprefix("; "), "the older", "the newer")
    settings = ", ".join(f"`{name}`" for _, name in entry.settings)
    proofs = "; ".join(f"{scenario} {_number(each.row_a)}/{_number(each.row_b)}" for scenario, each in entries)
    what = "; ".join(filter(None, (change.subject, explanation)))
    return _line([change.area, what, entry.a, entry.b, settings, proofs])


def _number(row: int | None) -> str:
    return "-" if row is None else f"#{row + 1}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """Text in a cell of Markdown."""
    return re.sub(r"([|_*])", r"\\\1", clean(text)).replace("<", "&lt;")


if __name__ == "__main__":
    MARKDOWN.write_text(markdown(upgrades()), encoding="utf-8")
