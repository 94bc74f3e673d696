"""The live screen of a proxy: what passes can be changed, too."""

from typing import Any, ClassVar

from tui.feature import ScreenFeature
from tui.features.faults import FaultsFeature
from tui.features.intercept import InterceptFeature
from tui.screens.live_screen import LiveScreen
from tui.screens.main_screen import MainScreen


class ProxyScreen(LiveScreen):
    """The main screen with live rows of a proxy that is controlled (`ProxySettings.is_controlled`)."""

    FEATURES: ClassVar[tuple[type[ScreenFeature[Any]], ...]] = (*MainScreen.FEATURES, FaultsFeature, InterceptFeature)
