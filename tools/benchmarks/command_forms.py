"""The commands that benchmarks run: each that the program lists, in every format of its `--format`, and in some other
ways that take work of their own. So a new command that reads captures is measured as soon as it is there; of one that
takes anything else it has to be said here what that is, or why it isn't measured.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import typer

from dissector.cli.every_command import app

IN, OUT = "{in}", "{out}"
"""In words: a capture, and a name for output."""
Words = tuple[str, ...]
_JSON, _BASELINE, TABLES = "{json}", "{baseline}", "{tables}"
MADE: Final[dict[str, Words]] = {
    _JSON: ("export", IN, "-f", "json", "-w", _JSON),
    _BASELINE: ("diff", IN, "--save-baseline", _BASELINE),
    TABLES: ("ingest", IN, "--out", TABLES),
}
"""In words, too: what a command makes of a capture. Of tables each command has a copy, as some change them."""
_BY: Final = ("api", "client", "connection", "topic", "partition", "version", "error", "field", "group", "finding")
_WAYS: Final[dict[str, dict[str, Words]]] = {
    "show": {
        "--fields": ("--fields", "api,topic,partition,group"),
        "-Y topic": ("-Y", "topic == nothing"),
        "-Y partition": ("-Y", "partition == 999999999"),
        "-Y record": ("-Y", 'record.value contains "nothing"'),
    },
    "stats": {f"--by {field}": ("--by", field) for field in _BY}
    | {each: (each,) for each in ("--plot", "--connections")},
    "export": {"--redact": ("--redact", "-w", f"{OUT}.pcapng")},
    "ingest": {"--frames": ("--frames", "--out", f"{OUT}.tables")},
}
"""Ways of a command beside its formats: what a table calls them, and the options."""
_NEEDED: Final[dict[str, Words]] = {
    "export": ("-w", OUT), "ingest": ("--out", f"{OUT}.tables"), "records -f parquet": ("-w", f"{OUT}.parquet"),
    "diff": (IN,), "diff -f junit": ("--baseline", _BASELINE), "diff -f sarif": ("--baseline", _BASELINE),
}  # fmt: skip
"""What a command, or a format of it, does nothing without."""
_OTHER: Final[dict[str, Words]] = {
    "show of tables": ("show", TABLES),
    "stats of tables": ("stats", TABLES),
    "diff of tables": ("diff", f"{TABLES}:{IN}", f"{TABLES}:{IN}"),
    "diff --save-baseline": ("diff", IN, "--save-baseline", OUT),
    "diff --baseline": ("diff", IN, "--baseline", _BASELINE),
}
_WORDS: Final[dict[str, Words]] = {
    "encode": (_JSON,),
    "tables forget": (TABLES, IN),
    "tables replace": (TABLES, IN),
    "tables views": (TABLES, "--snapshot"),
    **{f"tables {name}": (TABLES,) for name in ("list", "compact", "upgrade", "vacuum", "upkeep", "verify", "iceberg")},
}
"""Arguments of commands that read no captures."""
_ELSEWHERE: Final = {
    "open": "prints what `show` prints, or has a screen, which `screen` measures",
    "recent": "has a screen",
    **dict.fromkeys(("live", "proxy", "serve", "replay", "probe"), "has to do with a network"),
    **dict.fromkeys(("samples", "explain", "man"), "reads no file"),
    **{f"schema {name}": "reads jars, not captures" for name in ("import", "list", "remove", "diff")},
}
"""Commands that are not measured here, and why."""


def _forms() -> Iterator[tuple[str, Words]]:
    for name, command in _listed(typer.main.get_command(app)):
        first = next((each.name for each in command.params if each.param_type_name == "argument"), None)
        if name in _ELSEWHERE:
            continue
        if name in _WORDS:
            yield name, (*name.split(), *_WORDS[name])
        elif first in ("files", "captures"):
            yield from _of_captures(name, command)
        else:
            raise SystemExit(f"{name}: say in {__name__} how to measure it")


def _listed(group: Any, before: Words = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _listed(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


def _of_captures(name: str, command: Any) -> Iterator[tuple[str, Words]]:
    formats = next((each.type.choices for each in command.params if each.name == "form"), ())
    for form in formats or ("",):
        title = f"{name} -f {form}" if form else name
        yield title, (name, IN, *_NEEDED.get(title, _NEEDED.get(name, ())), *(("-f", form) if form else ()))
    for way, options in _WAYS.get(name, {}).items():
        yield f"{name} {way}", (name, IN, *options)


COMMANDS: Final = dict(_forms()) | _OTHER
"""Words of each, by what a table calls it."""


class NotMadeError(Exception):
    """What a command reads could not be made of a capture: the message says why."""


def filled(words: Words, path: Path, run: Callable[[Words], str]) -> Words:
    """Return the words of a command for a capture. What they need of it is made by `run`, which says what failed, and
    kept beside it. Raises `NotMadeError`."""
    places = {IN: str(path), OUT: str(path.parent / "out")}
    for part, making in MADE.items():
        if any(part in word for word in words):
            places[part] = f"{path}.{part.strip('{}')}"
            if not Path(places[part]).exists() and (failure := run(_replaced(making, places))):
                raise NotMadeError(failure)
    if any(TABLES in word for word in words):
        places[TABLES] = shutil.copytree(places[TABLES], places[OUT] + "-tables")
    return _replaced(words, places)


def _replaced(words: Words, places: dict[str, str]) -> Words:
    for part, place in places.items():
        words = tuple(word.replace(part, place) for word in words)
    return words


def clear(folder: Path) -> None:
    """Remove what a command has written."""
    for made in folder.glob("out*"):
        shutil.rmtree(made) if made.is_dir() else made.unlink()
