"""The page of keys: all bindings of all screens, by the feature that has them."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Final

from textual.binding import Binding
from textual.screen import Screen
from textual.widget import Widget

import tui
from tools.docs.markdown import table
from tui.app import KDissectApp
from tui.feature import grouped_keys, place
from tui.screens.diff_screen import DiffScreen
from tui.screens.live_screen import LiveScreen
from tui.screens.main_screen import MainScreen
from tui.screens.proxy_screen import ProxyScreen

_HEAD: Final = """# Keys

`?` shows the keys that work where you are. Each can be changed by its name: `"main.flip" = "R"` in `config.toml`,
in the section `[keys]`.
"""
_FIRST: Final = (MainScreen, LiveScreen, ProxyScreen, DiffScreen)
_NAMES: Final = {
    "MainScreen": "A capture",
    "LiveScreen": "Live",
    "ProxyScreen": "A proxy",
    "FaultsScreen": "A proxy, faults",
    "HeldScreen": "A proxy, held messages",
    "DiffScreen": "Two captures",
    "DetailScreen": "An exchange of a comparison",
    "FollowScreen": "A connection as text",
    "IgnoredDialog": "Ignored differences",
    "IoGraphScreen": "IO graph",
    "IoGraphView": "IO graph, chart",
    "KDissectApp": "Everywhere",
    "VerdictsScreen": "Rules and baselines",
}


def page() -> str:
    """All of it."""
    seen: set[int] = set()
    parts = [_HEAD]
    for kind in screens():
        sections = [(feature, list(_rows(found, seen))) for feature, found in bound(kind)]
        sections = [(feature, rows) for feature, rows in sections if rows]
        if sections:
            parts.append(f"\n## {_NAMES.get(kind.__name__, _words(kind.__name__))}\n")
        for feature, rows in sections:
            parts += [f"\n### {feature}\n" if len(sections) > 1 else "", table(("key", "does", "name"), *rows)]
    return "\n".join(parts)


def screens() -> list[type]:
    """All classes that have bindings: the screens that are opened first, then other screens, panes, the program."""
    for found in pkgutil.walk_packages(tui.__path__, "tui."):
        importlib.import_module(found.name)
    rest = sorted((each for base in (Screen, Widget) for each in _subclasses(base)), key=lambda each: each.__name__)
    return [*_FIRST, *(each for each in rest if each not in _FIRST), KDissectApp]


def _subclasses(base: type) -> Iterator[type]:
    for each in base.__subclasses__():
        if each.__module__.startswith("tui."):
            yield each
        yield from _subclasses(each)


def bound(kind: type) -> Iterator[tuple[str, list[Binding]]]:
    """Yield the bindings of a class and of those of ours that it is made of, by feature."""
    groups: dict[str, list[Binding]] = {}
    for part in kind.__mro__:
        if part.__module__.startswith("tui."):
            for group, key in grouped_keys(part):
                groups.setdefault(group, []).append(key)
    yield from sorted(groups.items(), key=lambda group: place(group[0]))


def _rows(bindings: list[Binding], seen: set[int]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each binding that no earlier screen has."""
    for each in bindings:
        if id(each) in seen or not (each.tooltip or each.description):
            continue
        seen.add(id(each))
        keys = each.key_display or each.key
        shown = ", ".join(f"`{_key(key)}`" for key in keys.split(","))
        yield shown, each.tooltip or each.description, f"`{each.id}`" if each.id else ""


def _key(key: str) -> str:
    return {
        "slash": "/", "question_mark": "?", "left_square_bracket": "[", "right_square_bracket": "]", "backslash": "\\",
        "left_curly_bracket": "{", "right_curly_bracket": "}", "apostrophe": "'", "semicolon": ";", "colon": ":",
        "plus": "+", "minus": "-", "less_than_sign": "<", "greater_than_sign": ">", "equals_sign": "=",
        "exclamation_mark": "!",
    }.get(key, key)  # fmt: skip


def _words(name: str) -> str:
    """Return the name of a class as words: ``SequenceScreen`` is a sequence screen."""
    text = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    return text.capitalize()
