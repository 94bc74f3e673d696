"""What `kdissect diff` prints of the compared clients, as the files that the README shows: ``docs/*.txt``.

`python -m tools.lab.reports` writes them; a test holds them equal to what is printed now, so that a change of the
reports is read before it is committed.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dissector.analysis.diff import build_matrix, diff
from dissector.analysis.diff.report import diff_report, matrix_report
from dissector.analysis.rendering import ReportBlock, render_text
from tests.analysis.diff.editing import bundled, side

DOCS: Final = Path(__file__).parents[2] / "docs"
CLIENTS: Final = ("java", "librdkafka", "kafka-python", "aiokafka")


def reports() -> dict[str, str]:
    """By the name of the file, what it has to say."""
    sides = [side(bundled(f"compare-{client}-1")) for client in CLIENTS]
    java, librdkafka = sides[:2]
    return {
        "diff-java-librdkafka.txt": _printed(diff_report(diff(java, librdkafka))),
        "matrix.txt": _printed(matrix_report(build_matrix(sides))),
    }


def _printed(blocks: Iterable[ReportBlock]) -> str:
    return "".join(f"{line}\n" for line in render_text(blocks))


if __name__ == "__main__":
    for name, words in reports().items():
        (DOCS / name).write_text(words, encoding="utf-8")
