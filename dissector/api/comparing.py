"""What is different between two captures, as programs see it."""

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from dissector.analysis.diff import DiffSide
from dissector.analysis.diff import diff as compared
from dissector.analysis.diff.report import diff_report
from dissector.analysis.diff.result import DiffResult
from dissector.analysis.diff.to_json import diff_to_json
from dissector.analysis.rendering import render_notebook, render_text

if TYPE_CHECKING:
    from dissector.api.capture import Capture


class Diff:
    """The differences between two captures. Printed, it is the report of `kdissect diff`.

    >>> a, b = (dissector.open(f"pcaps/compare-java-{n}.pcapng") for n in (1, 2))
    >>> dissector.diff(a, b).is_same
    True
    """

    def __init__(self, result: DiffResult) -> None:
        self._result = result

    @property
    def is_same(self) -> bool:
        """Whether the clients did the same, disregarding times and generated names."""
        return self._result.is_same

    def __len__(self) -> int:
        """Return the number of differences."""
        return len(self._result.entries)

    def __bool__(self) -> bool:
        return True

    def json(self) -> dict[str, Any]:
        """Return it as `kdissect diff --format json` prints it, as an object."""
        return diff_to_json(self._result)

    def __str__(self) -> str:
        return "\n".join(render_text(diff_report(self._result)))

    def __repr__(self) -> str:
        return f"<diff: {len(self):,} differences>"

    def _repr_html_(self) -> str:
        return render_notebook(diff_report(self._result, with_bytes=True))


def diff(a: "Capture", b: "Capture") -> Diff:
    """Compare two open captures: which requests clients sent, in which versions and with which fields, and how brokers
    answered.

    >>> a, b = (dissector.open(f"pcaps/compare-{name}-1.pcapng") for name in ("java", "librdkafka"))
    >>> dissector.diff(a, b).is_same
    False
    """
    return Diff(compared(_side(a), _side(b)))


def _side(capture: "Capture") -> DiffSide:
    from dissector.api.capture import Capture

    if not isinstance(capture, Capture):
        raise TypeError(f"{type(capture).__name__} is not a capture: open it with dissector.open")
    session = capture._read()
    return DiffSide(session, PurePath(session.names[0]).stem)
