"""The diff screen: the panes of `diff_core_screen.py`, and what a user does with them: a file in `features/` each."""

from typing import ClassVar

from dissector.tui.features.diff_export import DiffExportFeature
from dissector.tui.features.diff_ignored import DiffIgnoredFeature
from dissector.tui.features.diff_matching import DiffMatchingFeature
from dissector.tui.features.diff_navigation import DiffNavigationFeature
from dissector.tui.features.diff_panes import DiffPanesFeature
from dissector.tui.screens.core_screen import EscapeSteps
from dissector.tui.screens.diff_core_screen import DiffCoreScreen


class DiffScreen(DiffPanesFeature, DiffNavigationFeature, DiffMatchingFeature, DiffExportFeature, DiffIgnoredFeature):
    """Two sides next to each other, with all features."""

    ESCAPE_ORDER: ClassVar[EscapeSteps] = (
        DiffMatchingFeature.unmark,
        DiffCoreScreen.return_to_causes,
        DiffCoreScreen.leave_comparison,
    )
