"""K holds the capture to the rules of the protocol, or to a baseline that lies beside it."""

from pathlib import Path
from typing import ClassVar, Final

from textual.binding import Binding

from dissector.analysis.baseline import BaselineError, hold, read_baseline
from dissector.analysis.conformance import check
from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.outcomes import RuleStatus
from dissector.core.text import clean, counted
from tui.feature import OVERALL, ScreenFeature
from tui.location_history import Location
from tui.messages import GoTo
from tui.result_lines import baseline_lines, check_lines, with_indices
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu
from tui.screens.verdicts_screen import Judge, Lines, VerdictsScreen, Watch

MOST_BASELINES: Final = 20
"""Baselines that are offered."""
MAX_SIZE: Final = 1 << 20
"""Bytes of a text that may be a baseline."""
RULES: Final = "Rules of the protocol"


class CheckFeature(ScreenFeature[CoreScreen]):
    """K shows which rules are broken."""

    GROUP = OVERALL

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("K", "check", "Check", show=False, id="main.check",
                tooltip="Check the capture against the protocol's rules, or against a baseline"),
    ]  # fmt: skip

    def action_check(self) -> None:
        if not self.screen.is_read():
            return
        paths = baselines_beside(self.screen.capture.names[0])
        if not paths:
            self._judge(RULES, self._rules)
            return
        choices = [Choice(RULES), *(Choice(clean(path.name), "baseline") for path in paths)]

        def chosen(number: int | None) -> None:
            if number == 0:
                self._judge(RULES, self._rules)
            elif number is not None:
                path = paths[number - 1]
                self._judge(f"Checked against {clean(path.name)}", self._baseline(path))

        self.app.push_screen(Menu("Check", choices), chosen)

    def _judge(self, title: str, judge: Judge) -> None:
        self.app.push_screen(VerdictsScreen(title, judge, len(self.screen.capture)), self._verdicts_closed)

    def _verdicts_closed(self, place: Location | None) -> None:
        if place is not None:
            self.screen.post_message(GoTo(*with_indices(self.screen.capture.exchange(place.number), place)))

    def _rules(self, watch: Watch) -> tuple[str, Lines]:
        result = check([(self.screen.capture.names[0], self.screen.capture)], watch=watch)
        broken = sum(result.counts(rule)[1] > 0 for rule in result.rules)
        return f"● {counted(broken, 'rule')} broken", lambda whole: check_lines(result, whole=whole)

    def _baseline(self, path: Path) -> Judge:
        def judge(watch: Watch) -> tuple[str, Lines]:
            baseline, lines = read_baseline(path.read_text("utf-8"))
            profile = SideProfile(DiffSide(self.screen.capture, path.stem), {}, {})
            watch(len(self.screen.capture))
            outcomes = hold(profile, baseline, lines, file=str(path))
            broken = sum(each.status is RuleStatus.BROKEN for each in outcomes)
            return f"● {counted(broken, 'line')} broken", lambda _: baseline_lines(outcomes)

        return judge


def baselines_beside(capture: str) -> list[Path]:
    """Return the baselines in a capture's folder, by name."""
    try:
        texts = sorted(Path(capture).parent.glob("*.toml"))
    except OSError:
        return []
    return [path for path in texts[:MOST_BASELINES] if _is_baseline(path)]


def _is_baseline(path: Path) -> bool:
    try:
        if path.stat().st_size > MAX_SIZE:
            return False
        read_baseline(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, BaselineError):
        return False
    return True
