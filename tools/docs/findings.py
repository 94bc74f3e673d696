"""The page of findings: what each means, why it happens, what to do, and a recording that shows it."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import dissector
from dissector.findings.explanation import Explanation
from dissector.findings.registry import CODES, CROSS_MESSAGE_CODES, explain
from tools.docs.markdown import table

PCAPS: Final = Path(__file__).parents[2] / "pcaps"
_HEAD: Final = """# Findings

What kdissect says about odd, damaged and troubled traffic. On the screen `F` lists the findings of a capture and `i`
explains those of an exchange; `kdissect explain CODE` prints what stands here; `finding == "CODE"` is a filter.
"""


def page() -> str:
    """All of it."""
    found = [each for code in CODES if (each := explain(code)) is not None]
    rows = [(f"[{each.code}](#{each.code})", each.severity.value, each.title) for each in found]
    return "\n".join([_HEAD, table(("code", "severity", "meaning"), *rows), *(_section(each) for each in found)])


def _section(each: Explanation) -> str:
    kind = "several messages show it" if each.code in CROSS_MESSAGE_CODES else "one message or file shows it"
    parts = [
        f"## {each.title} {{ #{each.code} }}", f"`{each.code}`, {each.severity.value}; {kind}.",
        each.what, f"**Why.** {each.why}", f"**What to do.** {each.what_to_do}",
    ]  # fmt: skip
    example = examples().get(each.code)
    if example is not None:
        parts.append(f"**Example.** `pcaps/{example[0]}`: {example[1]}")
    return "\n\n".join(parts) + "\n"


@cache
def examples() -> dict[str, tuple[str, str]]:
    """By code, the smallest recording that shows it, and its message there."""
    found: dict[str, tuple[str, str]] = {}
    # Of the clients' recordings those of a restart: no other has connections that were closed before a request. And one
    # client's after faults: they have what a proxy injected.
    compressed = [*PCAPS.glob("clients/*/broker-restarted-1.pcapng.zst"), *PCAPS.glob("faulted/java-4.3/*.pcapng.zst")]
    paths = [*PCAPS.rglob("*.pcapng"), *PCAPS.rglob("*.pcap"), *compressed]
    for path in sorted(paths, key=lambda each: (each.stat().st_size, each)):
        with dissector.open(path) as capture:
            for code, message in _messages(capture):
                found.setdefault(code, (str(path.relative_to(PCAPS)), message))
    return found


def _messages(capture: dissector.Capture) -> Iterator[tuple[str, str]]:
    for exchange, finding in capture.findings():
        yield finding.code, f"exchange {exchange.number}: {finding.message}."
    for finding in capture.problems:
        yield finding.code, f"{finding.message}."
