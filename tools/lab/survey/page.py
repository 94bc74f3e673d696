"""`docs/clients.md` and `docs/clients.html`, made from the recordings: `python -m tools.lab.survey.page`.

No broker is needed. Each cell names the exchange that proves it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from dissector.analysis.conformance import Breach, CheckResult
from tools.lab.survey.clients import CLIENTS, SurveyedClient
from tools.lab.survey.facts import SECTIONS, Proof, Section, cell
from tools.lab.survey.recording import read_recording
from tools.lab.survey.recording_files import provenance_path, recording_path
from tools.lab.survey.scenarios import PLAIN, SCENARIOS
from tools.lab.tools import ROOT

MARKDOWN = ROOT / "docs" / "clients.md"
HTML = ROOT / "docs" / "clients.html"
TITLE = "Twelve Kafka clients"


class Table(NamedTuple):
    """A part of the page: its rows begin with a client; cells know the file that proves them, from `docs/`."""

    title: str
    words: str
    head: tuple[str, ...]
    rows: list[tuple[str, str, list[Proof]]]
    """The client's title, the file, the cells."""


class Page(NamedTuple):
    """All of it."""

    intro: str
    tables: list[Table]


def build_page(clients: Iterable[SurveyedClient] = CLIENTS) -> Page:
    """Read the first recording of each scenario of each client."""
    chosen = list(clients)
    cells: dict[tuple[str, str], list[Proof]] = {}
    counts: dict[tuple[str, str], Proof] = {}
    verdicts: list[tuple[str, str, list[Proof]]] = []
    for client in chosen:
        rules = RuleCounts()
        for scenario in SCENARIOS:
            path = recording_path(client.name, scenario.name)
            if not path.exists():
                reason = client.refusal(scenario.name) or "not recorded"
                counts[client.name, scenario.name] = Proof(reason)
                continue
            with read_recording(path) as recording:
                counts[client.name, scenario.name] = Proof(f"{len(recording.exchanges)}", link=_link(path))
                rules.add(recording.check(), scenario.title, _link(path))
                for section in SECTIONS:
                    if section.scenario == scenario.name:
                        cells[client.name, section.title] = [cell(fact, recording) for fact in section.facts]
        verdicts += rules.rows(client.title)
    tables = [_overview(chosen, counts)]
    tables += [_section(section, chosen, cells) for section in SECTIONS]
    tables.append(Table("Rules of the protocol", "What `kdissect check` reports for all these recordings of a client.",
                        ("rules kept", "broken", "by", "what is wrong", "messages", "in"), verdicts))  # fmt: skip
    return Page(_intro(chosen, counts), tables)


def _link(path: Path) -> str:
    return f"../{path.relative_to(ROOT)}"


def _intro(clients: list[SurveyedClient], counts: dict[tuple[str, str], Proof]) -> str:
    recorded = sum(1 for proof in counts.values() if proof.link)
    exchanges = sum(int(proof.text) for proof in counts.values() if proof.link)
    return (
        f"{len(clients)} clients do the same work with a Kafka 4.3.1 broker: {recorded} recordings with"
        f" {exchanges:,} exchanges. Every cell comes from a recording, none from a manual: `#17` is exchange 17 of the"
        " file to which the client's name in that row links, and which `kdissect` opens. Defaults are the client's own"
        " unless the scenario says otherwise. `make clients` records everything again and makes this page; `make"
        " clients-page` makes the page from the existing recordings. The page of upgrades shows what changes from one"
        " release of a client to the next."
    )


def _overview(clients: list[SurveyedClient], counts: dict[tuple[str, str], Proof]) -> Table:
    head = ("version", *(scenario.title for scenario in SCENARIOS))
    rows = [
        (client.title, "", [Proof(_version(client)), *(counts[client.name, scenario.name] for scenario in SCENARIOS)])
        for client in clients
    ]
    words = "The number of exchanges in each recording, or why there is none."
    return Table("Recordings", words, head, rows)


def _version(client: SurveyedClient) -> str:
    """The release in the provenance of its first recording."""
    provenance = json.loads(provenance_path(recording_path(client.name, PLAIN)).read_text("utf-8"))
    return str(provenance["client_version"])


def _section(section: Section, clients: list[SurveyedClient], cells: dict[tuple[str, str], list[Proof]]) -> Table:
    rows = []
    for client in clients:
        found = cells.get((client.name, section.title))
        reason = client.refusal(section.scenario) or "not recorded"
        path = _link(recording_path(client.name, section.scenario)) if found else ""
        empty = [Proof(reason), *(Proof("") for _ in section.facts[1:])]
        rows.append((client.title, path, found or empty))
    return Table(section.title, section.words, tuple(fact.heading for fact in section.facts), rows)


class RuleCounts:
    """What became of the rules in all recordings of a client."""

    def __init__(self) -> None:
        self._kept: set[str] = set()
        self._broken: dict[str, tuple[str, Breach]] = {}
        """The file and the first breach, by the rule's code."""
        self._messages: Counter[tuple[str, bool]] = Counter()
        self._scenarios: dict[str, list[str]] = {}

    def add(self, result: CheckResult, scenario: str, link: str) -> None:
        """Add one recording."""
        for rule in result.rules:
            kept, broken = result.counts(rule)
            self._messages[rule.code, True] += kept
            self._messages[rule.code, False] += broken
            if broken:
                self._scenarios.setdefault(rule.code, []).append(scenario)
            elif kept:
                self._kept.add(rule.code)
        for breach in result.breaches:
            self._broken.setdefault(breach.rule.code, (link, breach))

    def rows(self, client: str) -> Iterator[tuple[str, str, list[Proof]]]:
        """A row for each rule that is broken; one row if none is."""
        kept = Proof(f"{len(self._kept - self._broken.keys())}")
        if not self._broken:
            yield client, "", [kept, Proof("none"), *[Proof("")] * 4]
        for code, (link, breach) in self._broken.items():
            broken = self._messages[code, False]
            yield client, link, [
                kept, Proof(code), Proof(breach.rule.side.value), Proof(breach.words, breach.exchange),
                Proof(f"{broken} of {broken + self._messages[code, True]}"), Proof("; ".join(self._scenarios[code])),
            ]  # fmt: skip


def markdown(page: Page) -> str:
    """The page as Markdown."""
    parts = [f"# {TITLE}\n", page.intro]
    for table in page.tables:
        parts += [f"\n## {table.title}\n", f"{table.words}\n"]
        head = ("client", *table.head)
        parts += [_row(head), "|" + "---|" * len(head)]
        for title, path, proofs in table.rows:
            name = f"[{title}]({path})" if path else title
            parts.append(_row([name, *map(_cell, proofs)]))
    return "".join(f"{part}\n" for part in parts)


def _cell(proof: Proof) -> str:
    text = proof.text.replace("|", "\\|").replace("_", "\\_").replace("*", "\\*").replace("<", "&lt;")
    text = f"[{text}]({proof.link})" if proof.link else text
    return f"{text} #{proof.number}" if proof.number else text


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem;color:#1b1f24;background:#fff}
h2{margin:2rem 0 .3rem;border-bottom:1px solid #d0d7de}p{max-width:60rem}
div{overflow-x:auto}table{border-collapse:collapse;font-size:90%}
td,th{border:1px solid #d0d7de;padding:.25rem .5rem;text-align:left;vertical-align:top}
tbody tr:hover{background:#f6f8fa}th{background:#f6f8fa}a{color:#0969da;text-decoration:none}
small{color:#57606a;white-space:nowrap}nav a{margin-right:1rem}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}small{color:#9198a1}a{color:#4493f8}
h2,td,th{border-color:#3d444d}th,tbody tr:hover{background:#151b23}}
"""


def html(page: Page) -> str:
    """The page as one file of HTML, without scripts."""
    intro = escape(page.intro).replace("`", "")
    anchors = "".join(f'<a href="#{_anchor(table)}">{escape(table.title)}</a>' for table in page.tables)
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        f' content="width=device-width"><title>{TITLE}</title><style>{STYLE}</style></head><body>',
        f"<h1>{TITLE}</h1>\n<p>{intro}</p>\n<nav>{anchors}</nav>",
    ]
    for table in page.tables:
        head = "".join(f"<th>{escape(text)}</th>" for text in ("client", *table.head))
        parts.append(f'<h2 id="{_anchor(table)}">{escape(table.title)}</h2>')
        words = escape(table.words).replace("`", "")
        parts.append(f"<p>{words}</p>\n<div><table><thead><tr>{head}</tr></thead><tbody>")
        for title, path, proofs in table.rows:
            name = f'<a href="{escape(path)}">{escape(title)}</a>' if path else escape(title)
            cells = "".join(f"<td>{_html_cell(proof)}</td>" for proof in proofs)
            parts.append(f"<tr><th>{name}</th>{cells}</tr>")
        parts.append("</tbody></table></div>")
    return "\n".join([*parts, "</body></html>\n"])


def _html_cell(proof: Proof) -> str:
    text = f'<a href="{escape(proof.link)}">{escape(proof.text)}</a>' if proof.link else escape(proof.text)
    return text + (f" <small>#{proof.number}</small>" if proof.number else "")


def _anchor(table: Table) -> str:
    return "-".join(table.title.lower().replace(",", "").split())


if __name__ == "__main__":
    built = build_page()
    MARKDOWN.write_text(markdown(built), encoding="utf-8")
    HTML.write_text(html(built), encoding="utf-8")
