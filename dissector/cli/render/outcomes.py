"""Outcomes in any form: text, JSON, Markdown, HTML, JUnit XML, SARIF."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dissector.analysis.outcomes import RuleOutcome, RuleStatus, junit, sarif
from dissector.analysis.rendering import HeadingBlock, ListBlock, ReportBlock, render_html, render_markdown, render_text
from dissector.cli.formats import RuleFormat
from dissector.core.json_text import dumps
from dissector.core.text import clean

_RENDERERS: Final = {RuleFormat.TEXT: render_text, RuleFormat.MARKDOWN: render_markdown, RuleFormat.HTML: render_html}
_WORDS: Final = {
    RuleStatus.BROKEN: "Differs", RuleStatus.ALLOWED: "Differs, and does not count", RuleStatus.NOT_SEEN: "Not seen",
}  # fmt: skip


def write_outcomes(form: RuleFormat, title: str, outcomes: Sequence[RuleOutcome]) -> None:
    """Print outcomes; those that hold are counted in a report, and listed where programs read."""
    if form is RuleFormat.JSON:
        sys.stdout.buffer.write(dumps({"title": title, "outcomes": [each._asdict() for each in outcomes]}) + b"\n")
    elif form is RuleFormat.JUNIT:
        sys.stdout.buffer.write(junit(title, outcomes) + b"\n")
    elif form is RuleFormat.SARIF:
        sys.stdout.buffer.write(dumps(sarif(outcomes)) + b"\n")
    else:
        write_blocks(form, outcome_blocks(title, outcomes))


def write_blocks(form: RuleFormat, blocks: Iterable[ReportBlock]) -> None:
    """Print a report as text, Markdown or HTML."""
    for line in _RENDERERS[form](blocks):
        print(line)


def outcome_blocks(title: str, outcomes: Sequence[RuleOutcome]) -> Iterator[ReportBlock]:
    """Yield a report on outcomes."""
    counts = Counter(each.status for each in outcomes)
    parts = [f"{counts[status]:,} {word}" for status, word in (
        (RuleStatus.HELD, "as before"), (RuleStatus.BROKEN, "different"), (RuleStatus.ALLOWED, "different but allowed"),
        (RuleStatus.NOT_SEEN, "not seen"),
    ) if counts[status]]  # fmt: skip
    yield HeadingBlock(1, clean(f"{title}: {', '.join(parts) or 'nothing compared'}"))
    for status, words in _WORDS.items():
        if not counts[status]:
            continue
        yield HeadingBlock(2, words)
        for each in outcomes:
            if each.status is status:
                exchange = (f"exchange {each.exchange:,}",) if each.exchange else ()
                yield ListBlock(clean(f"{each.rule}: {each.message}"), details=exchange)
