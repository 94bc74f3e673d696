"""The diff screen: the panes of `diff_core_screen.py`, and what a user does with them, a feature each (`features/`)."""

from typing import ClassVar

from tui.feature import EscapeSteps
from tui.features.diff_export import DiffExportFeature
from tui.features.diff_ignored import DiffIgnoredFeature
from tui.features.diff_matching import DiffMatchingFeature
from tui.features.diff_navigation import DiffNavigationFeature
from tui.features.diff_panes import DiffPanesFeature
from tui.screens.diff_core_screen import DiffCoreScreen


class DiffScreen(DiffCoreScreen):
    """Two sides next to each other, with all features."""

    FEATURES: ClassVar = (
        DiffIgnoredFeature, DiffExportFeature, DiffMatchingFeature, DiffNavigationFeature, DiffPanesFeature,
    )  # fmt: skip

    def escape_order(self) -> EscapeSteps:
        return (self.feature(DiffMatchingFeature).unmark, self.return_to_causes, self.leave_comparison)
