"""What a user does on a screen, an object for each thing: a feature.

A feature declares, under Textual's names, its keys (`BINDINGS`, shown in the group `GROUP` of the help), their actions
(`action_*`) and the messages that it handles (`on_*`); `commands` are those of the command line. A screen has a list of
features: it gets their keys, and hands each action and each message to the feature that declares it. What all features
are asked are the other methods of `ScreenFeature`.

The groups of keys are named by what one wants to do; those that matter most come first in the help, and in the footer.

Invariant: what a screen has twice (a key, the id of one, an action, a handler) is an error when its class is made. So
nothing depends on the order of the list, but the order of keys in help, palette and footer.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any, ClassVar, Concatenate, Final, Generic, ParamSpec, TypeVar

from textual.app import App
from textual.binding import Binding
from textual.notifications import SeverityLevel
from textual.screen import Screen

from tui.command_line import LineCommand

FIND: Final = "Find"
GO: Final = "Go to"
OVERALL: Final = "See the whole capture"
LIST: Final = "Change the list"
KEEP: Final = "Mark, copy, export"
PANES: Final = "Arrange the panes"
CAPTURE: Final = "Capture"
PROGRAM: Final = "Program"
ORDER: Final = (FIND, GO, OVERALL, LIST, KEEP, PANES, CAPTURE, PROGRAM)
"""Groups that are not here stand between these and the program's."""
FIRST: Final = (
    "main.filter", "main.next_error", "main.explain", "main.open", "main.flip", "main.apply_as_filter", "main.search",
    "main.records", "main.findings", "app.palette", "main.faults", "main.held",
)  # fmt: skip
"""The ids of the keys that a new user should know, most useful first; the last two are on a proxy's only."""


def place(group: str) -> int:
    """Return where a group stands."""
    return ORDER.index(group) if group in ORDER else ORDER.index(PROGRAM) - 1


ScreenOf = TypeVar("ScreenOf", bound="FeatureScreen")
AnyFeature = TypeVar("AnyFeature", bound="ScreenFeature[Any]")
Arguments = ParamSpec("Arguments")
EscapeSteps = tuple[Callable[[], bool], ...]
"""What Escape does: the first of these that has something to stop or to undo does it, and returns True."""


class ScreenFeature(Generic[ScreenOf]):
    """One thing that a user does on a screen. Its state is in it; other features are reached by `screen.feature`."""

    GROUP: ClassVar[str] = PROGRAM
    """The group of its keys in help and palette."""
    NEEDS_ROWS: ClassVar[bool] = True
    """Whether its keys have nothing to do in a capture without rows."""
    BINDINGS: ClassVar[list[Binding]] = []

    def __init__(self, screen: ScreenOf) -> None:
        self.screen = screen

    @property
    def app(self) -> App[Any]:
        return self.screen.app

    def notify(self, message: str, *, severity: SeverityLevel = "information", timeout: float | None = None) -> None:
        """Tell the user something, for so many seconds. It is no markup: the words may come from the wire."""
        self.screen.notify(message, severity=severity, timeout=timeout, markup=False)

    def commands(self) -> Iterator[LineCommand]:
        """Yield its commands that take an argument: a key is a command by its id."""
        yield from ()

    def mounted(self) -> None:
        """The screen has its widgets."""

    def resized(self) -> None:
        """The terminal has another size."""

    def rows_added(self, *, done: bool) -> None:
        """There may be more rows; if `done`, these are all."""

    def rows_renumbered(self) -> None:
        """Rows have their final numbers. Who keeps numbers takes the new ones (`Capture.rows.after_sort`)."""

    def message_drawn(self) -> None:
        """Another message is shown."""

    def title_words(self) -> str:
        """Return what the title says of the rows, for example " · decode as 9092 kafka"."""
        return ""

    def status_words(self) -> str:
        """Return the progress of background work for the title, for example " · analyzing 5 %"."""
        return ""

    def stop_work(self, group: str) -> None:
        """Stop the workers of a group."""
        self.screen.workers.cancel_group(self.screen, group)


def work(
    *, group: str, thread: bool = False, exclusive: bool = False
) -> Callable[
    [Callable[Concatenate[AnyFeature, Arguments], object]], Callable[Concatenate[AnyFeature, Arguments], None]
]:
    """Make a worker of a feature's screen of a method, as Textual's decorator does for a widget's own methods."""

    def decorated(
        method: Callable[Concatenate[AnyFeature, Arguments], object],
    ) -> Callable[Concatenate[AnyFeature, Arguments], None]:
        @wraps(method)
        def start(feature: AnyFeature, /, *args: Arguments.args, **named: Arguments.kwargs) -> None:
            run = partial(method, feature, *args, **named)
            feature.screen.run_worker(run, method.__name__, group=group, thread=thread, exclusive=exclusive)

        return start

    return decorated


class FeatureScreen(Screen[None]):
    """A screen with features."""

    FEATURES: ClassVar[tuple[type[ScreenFeature[Any]], ...]] = ()
    """In the order of their keys in help, palette and footer."""
    GROUP: ClassVar[str] = PROGRAM
    """The group of the keys that the class itself declares."""

    def __init_subclass__(cls, **named: Any) -> None:
        """Give a class that lists features their keys, actions and handlers. Raises `TypeError` for what is there
        twice."""
        if "FEATURES" in cls.__dict__:
            above = [each for each in cls.__mro__[1:] if issubclass(each, FeatureScreen)]
            inherited = above[0].FEATURES
            added = [each for each in cls.FEATURES if each not in inherited]
            cls.BINDINGS = [*cls.__dict__.get("BINDINGS", ()), *(key for each in added for key in each.BINDINGS)]
            _check_keys(cls.__name__, [key for each in (cls, *above) for _, key in grouped_keys(each)])
            for each in added:
                for name, method in _declared(each):
                    if hasattr(cls, name):
                        raise TypeError(f"{cls.__name__} has {name} twice, the second time in {each.__name__}")
                    setattr(cls, name, _handed_to(each, method))
        super().__init_subclass__(**named)

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[type[ScreenFeature[Any]], ScreenFeature[Any]] = {}

    def feature(self, kind: type[AnyFeature]) -> AnyFeature:
        """Return a feature of the screen. It is made when it is first asked for."""
        assert kind in self.FEATURES, kind
        if kind not in self._made:
            self._made[kind] = kind(self)
        found = self._made[kind]
        assert isinstance(found, kind)
        return found

    @property
    def features(self) -> list[ScreenFeature[Any]]:
        """All features, in the order of the list."""
        return [self.feature(kind) for kind in self.FEATURES]

    def escape_order(self) -> EscapeSteps:
        """Return what Escape does, first thing first."""
        return ()

    def action_escape(self) -> None:
        """Do one thing each time."""
        any(step() for step in self.escape_order())


def grouped_keys(kind: type) -> Iterator[tuple[str, Binding]]:
    """Yield the keys that a class declares, itself or by its features, each with its group."""
    groups = {id(key): each.GROUP for each in kind.__dict__.get("FEATURES", ()) for key in each.BINDINGS}
    for key in kind.__dict__.get("BINDINGS", ()):
        if isinstance(key, Binding):
            yield groups.get(id(key), kind.__dict__.get("GROUP", PROGRAM)), key


def _check_keys(screen: str, bindings: list[Binding]) -> None:
    for name, times in Counter(name for each in bindings for name in (*each.key.split(","), each.id)).items():
        if times > 1:
            raise TypeError(f"{screen} binds {name} twice")


def _declared(feature: type[ScreenFeature[Any]]) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield what Textual calls: actions and handlers."""
    for name in dir(feature):
        if name.startswith(("action_", "on_")):
            yield name, getattr(feature, name)


def _handed_to(kind: type[ScreenFeature[Any]], method: Callable[..., object]) -> Callable[..., object]:
    """Return a method for a screen that calls one of its feature."""

    @wraps(method)  # Textual counts the parameters
    def hand_on(screen: FeatureScreen, *args: object) -> object:
        return method(screen.feature(kind), *args)

    return hand_on
