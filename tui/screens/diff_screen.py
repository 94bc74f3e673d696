"""The diff screen: the panes of `diff_core_screen.py`, and what a user does with them: a file in `features/` each."""

from typing import ClassVar

from tui.features.diff_export import DiffExportFeature
from tui.features.diff_ignored import DiffIgnoredFeature
from tui.features.diff_matching import DiffMatchingFeature
from tui.features.diff_navigation import DiffNavigationFeature
from tui.features.diff_panes import DiffPanesFeature
from tui.screens.core_screen import EscapeSteps
from tui.screens.diff_core_screen import DiffCoreScreen


class DiffScreen(DiffPanesFeature, DiffNavigationFeature, DiffMatchingFeature, DiffExportFeature, DiffIgnoredFeature):
    """Two sides next to each other, with all features."""

    ESCAPE_ORDER: ClassVar[EscapeSteps] = (
        DiffMatchingFeature.unmark,
        DiffCoreScreen.return_to_causes,
        DiffCoreScreen.leave_comparison,
    )
