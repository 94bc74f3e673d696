"""What is wrong with options and arguments, in one plain line that names what may have been meant.

Everything is derived from the commands: their options, the choices of these, and the row fields that filters take. Only
what other programs call an option is a table.

Invariant: this is imported when a line is wrong, so that a right one does not pay for it.
"""

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final

import typer
from typer.main import get_command

from dissector.core.suggestions import alternatives

ALIKE: Final = 0.75
"""How alike, from 0 to 1, an option and another are for the one to be meant by the other."""
_ELSEWHERE: Final = {
    "-n": ("--limit",), "-c": ("--limit",), "--count": ("--limit",), "--head": ("--limit",),
    "-o": ("-w", "--out"), "--output": ("-w", "--out"), "--out-file": ("-w",), "-T": ("--format",),
    "-e": ("--fields",), "--columns": ("--fields",), "--query": ("--filter",), "--where": ("--filter",),
    "-v": ("--version",), "-V": ("--version",), "--tls-keylog": ("--keylog",),
    "--bootstrap-server": (), "--bootstrap-servers": (), "-r": (),
}  # fmt: skip
"""What tshark, tcpdump, kcat and other programs call an option, and what it may be called here; nothing where that is
an argument without a name."""
_NUMBER: Final = re.compile(r"^(?P<value>'.*') is not a valid (?:int|integer|float)(?: range)?\.$", re.DOTALL)
_RANGE: Final = re.compile(
    r"^(?P<value>\S+) is not in the range (?:(?P<low>[-.\d]+)<=)?x(?:>=(?P<least>[-.\d]+))?(?:<=(?P<high>[-.\d]+))?\.$"
)
_CHOICE: Final = re.compile(r"^(?P<value>'.*') is not one of .*\.$", re.DOTALL)
_FORMAT: Final = "--format"
_FILTER: Final = "--filter"


def usage_words(error: Any, program: str, whole_program: Callable[[], typer.Typer]) -> str:
    """Return the line about an error of click's, or of the copy of click that Typer has. `whole_program` gives all
    commands, also those that were left out to start quickly."""
    context = error.ctx
    if type(error).__name__ == "NoSuchOption" and context is not None:
        return f"{_no_such_option(error, whole_program)}; see {context.command_path} --help"
    command = context.command_path if context is not None else program
    explain = {
        "BadParameter": _bad_value, "BadOptionUsage": _bad_option, "UsageError": _extra_arguments,
    }.get(type(error).__name__, _plain)  # fmt: skip
    return f"{explain(error)}; see {command} --help"


def _plain(error: Any) -> str:
    words = error.format_message().rstrip(".")
    words = re.sub(r"\.? (?:\(Possible options: (.+)\)|Did you mean (.+)\?)$", _did_you_mean, words)
    return f"{words[:1].lower()}{words[1:]}"


def _did_you_mean(found: "re.Match[str]") -> str:
    return f"; did you mean {(found[1] or found[2]).replace(chr(39), '')}"


def _no_such_option(error: Any, whole_program: Callable[[], typer.Typer]) -> str:
    name = error.option_name
    meant = _meant_option(name, error.ctx) or _others_with(name, whole_program)
    return f"no such option: {name}" + (f"; {meant}" if meant else "")


def _meant_option(name: str, context: Any) -> str:
    """Return what an unknown option may have meant; an empty string if nothing is like it."""
    options = {each: option for option in context.command.params for each in option.opts if each.startswith("-")}
    options |= dict.fromkeys(context.help_option_names)
    word = name.lstrip("-")
    if word.lower() in _choices(options.get(_FORMAT)):
        return f"did you mean {_FORMAT} {word.lower()}"
    if name in _ELSEWHERE:
        found = [each for each in _ELSEWHERE[name] if each in options]
        if found:
            return f"did you mean {found[0]}"
        arguments = [each for each in context.command.params if not each.opts[0].startswith("-")]
        if arguments and not _ELSEWHERE[name]:
            return f"{arguments[0].make_metavar(context)} is named without an option"
    near = [each for each in (name.swapcase(), name.lower()) if each in options]
    near += get_close_matches(name, options, 2, ALIKE)
    if near:
        return f"did you mean {' or '.join(dict.fromkeys(near))}"
    if _FILTER in options and (field := _row_field(word)):
        return f"did you mean -Y '{field} == …'"
    return ""


def _others_with(name: str, whole_program: Callable[[], typer.Typer]) -> str:
    """Return which commands have an option; an empty string if none has."""
    commands = vars(get_command(whole_program()))["commands"]
    found = [
        each for each, command in commands.items()
        if not command.hidden and any(name in option.opts for option in command.params)
    ]  # fmt: skip
    return f"{alternatives(found, 'and')} {'has' if len(found) == 1 else 'have'} it" if found else ""


def _row_field(word: str) -> str:
    from dissector.exchange.row_fields import ROW_FIELDS

    field = ROW_FIELDS.get(word.replace("-", "_"))
    return field.name if field is not None else ""


def _choices(option: Any) -> list[str]:
    """Return the words that an option takes; an empty list if it takes any."""
    found = getattr(getattr(option, "type", None), "choices", ())
    return [str(getattr(each, "value", each)) for each in found]


def _bad_option(error: Any) -> str:
    """An option without its value, or with one that it does not take."""
    words = error.format_message().rstrip(".")
    if "requires an argument" in words:
        option = error.option_name
        known = next((each for each in error.ctx.command.params if option in each.opts), None) if error.ctx else None
        value = known.make_metavar(error.ctx) if known is not None else "a value"
        return f"{option} needs {value}"
    return f"{words[:1].lower()}{words[1:]}"


def _bad_value(error: Any) -> str:
    """A value that an option or an argument does not take."""
    if error.param is None:
        return _plain(error)
    names = error.param.opts
    name = max(names, key=len) if names[0].startswith("-") else error.param.make_metavar(error.ctx)
    if number := _NUMBER.match(error.message):
        return f"{name}: {number['value']} is not a number"
    if found := _RANGE.match(error.message):
        low, high = found["low"] or found["least"], found["high"]
        lowest = f"{found['value']} is less than {low}"
        return f"{name}: " + (f"{found['value']} is not a number from {low} to {high}" if high else lowest)
    if found := _CHOICE.match(error.message):
        choices = _choices(error.param)
        near = get_close_matches(found["value"].strip("'").lower(), choices, 1)
        hint = f"; did you mean {near[0]}" if near else ""
        return f"{name}: {found['value']} is not {alternatives(choices)}{hint}"
    return _plain(error)


def _extra_arguments(error: Any) -> str:
    """Arguments behind the last one that a command takes."""
    _, found, rest = error.format_message().partition("unexpected extra argument")
    if not found or error.ctx is None:
        return _plain(error)
    words = rest.partition("(")[2].rstrip(").")
    words = rest.partition(") (")[2].rstrip(").") or words
    path = error.ctx.command_path
    takes_command = any("COMMAND" in (each.metavar or "") for each in error.ctx.command.params)
    if takes_command:
        named = "; an interface needs -i, a port -p" if path.endswith(" live") else ""
        hint = f"{named}; a command stands behind --: {path} -- {words}"
    else:
        takes_address = any("PORT" in (each.metavar or "") for each in error.ctx.command.params)
        hint = "; write HOST:PORT" if takes_address and words.isdecimal() else ""
    return f"unexpected argument: {words}{hint}"
