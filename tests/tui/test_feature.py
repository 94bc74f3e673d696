"""Features of screens: what one declares is in the help, the palette, the footer and the command line; what two of a
screen declare is an error when its class is made."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from textual.binding import Binding
from textual.message import Message
from textual.screen import Screen

from dissector.capture_session import Capture
from tests.tui.main_driver import JAVA
from tests.tui.main_driver import Screen as Driven
from tools.docs.keys import bound, screens
from tui.app import KDissectApp
from tui.command_line import LineCommand
from tui.feature import KEEP, FeatureScreen, ScreenFeature, grouped_keys
from tui.features.filter import FilterFeature
from tui.palette import action_commands
from tui.screens.core_screen import CoreScreen
from tui.screens.diff_screen import DiffScreen
from tui.screens.help_screen import keys_of
from tui.screens.live_screen import LiveScreen
from tui.screens.main_screen import DetailScreen, MainScreen
from tui.screens.proxy_screen import ProxyScreen
from tui.widgets.key_footer import KeyFooter

MOST_CLASSES = 8
"""Classes of ours behind a screen."""
FEATURE_SCREENS = (MainScreen, LiveScreen, ProxyScreen, DetailScreen, DiffScreen)


class Hailed(Message):
    """Somebody was greeted."""


class HailFeature(ScreenFeature[CoreScreen]):
    """f9 greets the row, :hail whom one likes; messages are counted."""

    GROUP = KEEP
    BINDINGS: ClassVar[list[Binding]] = [Binding("f9", "hail", "Hail", tooltip="Greet the row", id="test.greet")]
    handled = 0

    def commands(self) -> Iterator[LineCommand]:
        yield LineCommand("hail", "greet somebody", self._hail, "NAME", needs_argument=True)

    def action_hail(self) -> None:
        self._hail(f"row {self.screen.number + 1}")

    def _hail(self, name: str) -> None:
        self.notify(f"hail {name}, filter {self.screen.feature(FilterFeature).text!r}")
        self.screen.post_message(Hailed())

    def on_hailed(self) -> None:
        self.handled += 1

    def title_words(self) -> str:
        return f" · {self.handled} hailed"


class HailingScreen(MainScreen):
    """The main screen with one more feature."""

    FEATURES: ClassVar = (*MainScreen.FEATURES, HailFeature)


@pytest.mark.long
async def test_what_a_feature_declares_is_in_help_palette_footer_and_command_line() -> None:
    with Capture([JAVA]) as capture:
        main = HailingScreen(capture)
        app = KDissectApp(main)
        async with app.run_test(size=(200, 60)) as pilot:
            screen = Driven(pilot)
            await screen.settle()
            assert ("f9", "Greet the row") in keys_of(main)[KEEP]
            assert f"{KEEP}: Hail (f9)" in [command.title for command in action_commands(app, main)]
            assert "Hail" in [getattr(key, "description", "") for key in main.query_one(KeyFooter).children]
            await screen.press("f9")
            await screen.press(*["colon", "h", "a", "i", "l", "space", "y", "o", "u", "enter"])
            main.filter.apply("api == Fetch")
            await screen.settle()
            await screen.press(*["colon", "g", "r", "e", "e", "t", "enter"])
            said = [words for words in screen.notifications() if words.startswith("hail")]
            here = f"hail row {main.number + 1}, filter 'api == Fetch'"
            assert said == ["hail row 1, filter ''", "hail you, filter ''", here]
            assert main.feature(HailFeature).handled == 3
            await screen.resize((199, 60))
            assert "3 hailed" in screen.text("#title")


@pytest.mark.long
async def test_a_key_of_a_feature_is_mapped_by_its_id() -> None:
    with Capture([JAVA]) as capture:
        app = KDissectApp(HailingScreen(capture))
        async with app.run_test(size=(120, 40)) as pilot:
            screen = Driven(pilot)
            app.set_keymap({"test.greet": "f10"})
            await screen.press("f9", "f10")
            assert len([words for words in screen.notifications() if words.startswith("hail")]) == 1


def test_keys_have_the_group_of_their_feature() -> None:
    assert [(KEEP, HailFeature.BINDINGS[0])] == list(grouped_keys(HailingScreen))
    assert "main.mark" in [key.id for group, keys in bound(MainScreen) if group == KEEP for key in keys]


def _feature(**declared: Any) -> type[ScreenFeature[Any]]:
    return type("MadeUpFeature", (ScreenFeature,), declared)


@pytest.mark.parametrize(
    ("declared", "twice"),
    [
        ({"action_mark": lambda self: None}, "action_mark"),  # of another feature
        ({"action_open": lambda self: None}, "action_open"),  # of the screen
        ({"on_apply_filter": lambda self, event: None}, "on_apply_filter"),
        ({"on_exchange_list_row_chosen": lambda self, event: None}, "on_exchange_list_row_chosen"),
        ({"BINDINGS": [Binding("m", "quiet", "Quiet", id="test.quiet")]}, "m"),
        ({"BINDINGS": [Binding("q", "quiet", "Quiet", id="test.quiet")]}, "q"),  # of the screen
        ({"BINDINGS": [Binding("f9", "quiet", "Quiet", id="main.mark")]}, "main.mark"),
    ],
)
def test_what_a_screen_has_twice_is_an_error(declared: dict[str, Any], twice: str) -> None:
    with pytest.raises(TypeError, match=rf"^Doubled (has|binds) {twice} twice"):
        type("Doubled", (MainScreen,), {"FEATURES": (*MainScreen.FEATURES, _feature(**declared))})
    with pytest.raises(TypeError, match=rf"^Doubled (has|binds) {twice} twice"):  # whatever the order
        type("Doubled", (CoreScreen,), {"FEATURES": (_feature(**declared), *MainScreen.FEATURES)})


def test_few_classes_are_behind_a_screen() -> None:
    counts = {kind: sum(each.__module__.startswith("tui.") for each in kind.__mro__) for kind in screens()}
    assert {kind.__name__: count for kind, count in counts.items() if count > MOST_CLASSES} == {}
    assert counts[MainScreen] == 4


@pytest.mark.parametrize("kind", FEATURE_SCREENS)
def test_no_handler_depends_on_the_order_of_base_classes(kind: type[FeatureScreen]) -> None:
    ours = [each for each in kind.__mro__ if issubclass(each, Screen) and each.__module__.startswith("tui.")]
    handlers = [name for each in ours for name in each.__dict__ if name.startswith("on_")]
    assert len(handlers) == len(set(handlers))


@pytest.mark.parametrize("kind", FEATURE_SCREENS)
def test_each_key_of_a_feature_has_an_action(kind: type[FeatureScreen]) -> None:
    names = [key.action.partition("(")[0] for each in kind.FEATURES for key in each.BINDINGS]
    assert [name for name in names if not hasattr(kind, f"action_{name}")] == []
