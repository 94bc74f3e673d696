"""The command line of the main screen: what can be typed behind the colon, without a screen.

A number or a time goes to a row, a word runs a command, what follows it is the command's argument. Words are those of
the keys' ids (`[keys]` of `config.toml` has the same), and the palette runs the same actions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from dissector.core.suggestions import alternatives
from dissector.core.text import clean
from tui.widgets.filter_bar import Offer

MOST_FILES: Final = 200
"""Files that are offered, at most."""
Complete = Callable[[str, int], Iterable[Offer]]
"""Completions of an argument, at a cursor in it."""


class CommandError(ValueError):
    """What was typed is no command; the message is one plain line."""


class LineCommand(NamedTuple):
    """A command. `run` gets its argument, empty for none."""

    name: str
    words: str
    run: Callable[[str], object]
    argument: str = ""
    """What it takes; empty for nothing."""
    complete: Complete | None = None
    needs_argument: bool = False


def of_names(names: Callable[[], Iterable[tuple[str, str]]]) -> Complete:
    """Complete a name of some, which have a description each."""

    def complete(text: str, _cursor: int) -> Iterator[Offer]:
        typed = text.casefold()
        found = [(name, words) for name, words in names() if typed in name.casefold()]
        found.sort(key=lambda each: not each[0].casefold().startswith(typed))
        return (Offer(0, len(text), name, words) for name, words in found)

    return complete


def file_completions(text: str, _cursor: int) -> Iterator[Offer]:
    """Complete the path of a file; folders end in a slash."""
    folder, slash, typed = text.rpartition("/")
    try:
        there = sorted(Path(folder + slash or ".").iterdir())[: MOST_FILES * 10]
    except (OSError, ValueError):
        return
    hidden = typed.startswith(".")
    matching = (path for path in there if path.name.startswith(typed) and path.name.startswith(".") == hidden)
    for path, _ in zip(matching, range(MOST_FILES), strict=False):
        mark, words = ("/", "folder") if path.is_dir() else ("", "")
        yield Offer(0, len(text), f"{folder}{slash}{path.name}{mark}", words)


def completions(
    commands: Sequence[LineCommand], place_words: Callable[[str], str], text: str, cursor: int
) -> list[Offer]:
    """Return what may be at the cursor: commands, or what a command takes. A place is said in words, which
    `place_words` has: `goto` takes it as well."""
    name, space, _ = text[:cursor].partition(" ")
    if not space:
        if not name[:1].isalpha():
            words = place_words(name)
            return [Offer(0, len(text), f"goto {name}", words)] if words else []
        offered = of_names(lambda: ((each.name, _described(each)) for each in commands))(name, cursor)
        return [each._replace(text=each.text + (" " if _takes(commands, each.text) else "")) for each in offered]
    command = _command(commands, name)
    if command is None or command.complete is None:
        return []
    start = len(name) + 1
    found = command.complete(text[start:], cursor - start)
    return [each._replace(start=each.start + start, end=each.end + start) for each in found]


def _described(command: LineCommand) -> str:
    return f"{command.argument}: {command.words}" if command.argument else command.words


def _takes(commands: Sequence[LineCommand], name: str) -> bool:
    command = _command(commands, name)
    return command is not None and bool(command.argument)


def _command(commands: Sequence[LineCommand], name: str) -> LineCommand | None:
    return next((each for each in commands if each.name == name), None)


def run_line(commands: Sequence[LineCommand], text: str, go_to: Callable[[str], bool]) -> None:
    """Run what was typed; `go_to` goes to a place, if it is one, and says so. Raises `CommandError`."""
    typed = text.strip()
    name, _, argument = typed.partition(" ")
    if not typed:
        return
    if go_to(typed):
        return
    beginning = [each for each in commands if each.name.startswith(name)]
    command = _command(commands, name) or (beginning[0] if len(beginning) == 1 else None)
    if command is None:
        near = [each.name for each in beginning] or get_close_matches(name, [each.name for each in commands])
        words = f"; did you mean {alternatives(near[:5])}" if near else ""
        raise CommandError(clean(f"unknown command {name!r}{words}"))
    argument = argument.strip()
    if argument and not command.argument:
        raise CommandError(clean(f"{command.name} takes no argument, not {argument!r}"))
    if command.needs_argument and not argument:
        raise CommandError(f"{command.name} needs {command.argument}")
    command.run(argument)
