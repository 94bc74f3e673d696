"""How to add an extra to this installation: the command differs by what installed it.

  * pipx injects libraries into the environment that it made, and refuses the name of the program itself;
  * `uv tool` installs the program again, with all that it had and what is new;
  * an environment has pip, or uv made it without pip;
  * a Python that its system manages (PEP 668) takes nothing from pip: there the program gets an environment.

Invariant: each kind is recognized by the file that its maker leaves, never by the name of a folder.
"""

import os
import re
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shlex import join, quote
from typing import Any, Final, NamedTuple, Self

DISTRIBUTION: Final = "kafka-dissector"
_PIPX: Final = "pipx_metadata.json"
_PIPX_AGAIN: Final = ("pipx", "install", "--force")
_UV_TOOL: Final = "uv-receipt.toml"
_ENVIRONMENT: Final = "pyvenv.cfg"
_MANAGED: Final = "EXTERNALLY-MANAGED"
_OF_EXTRA: Final = re.compile(r"\s*(?:and\s+)?extra\s*==\s*['\"]([\w.-]+)['\"]\s*")
_OWN_EXTRAS: Final = re.compile(rf"{DISTRIBUTION}\s*\[([^]]*)\]")


class MissingExtraError(ModuleNotFoundError):
    """Libraries of an extra that are not installed. The message is one plain line with the command that adds them."""


class Installation(NamedTuple):
    """What installed this program, as far as it shows."""

    prefix: Path
    base_prefix: Path
    executable: str
    stdlib: Path
    has_pip: bool
    active: str
    """The environment that the shell uses ($VIRTUAL_ENV), or empty."""
    requirements: tuple[str, ...]
    """What the distribution requires, with its markers; empty if it is not installed, but run from its source."""

    @classmethod
    def here(cls) -> Self:
        """Return that of this process."""
        return cls(
            Path(sys.prefix), Path(sys.base_prefix), sys.executable or "python3", Path(sysconfig.get_path("stdlib")),
            find_spec("pip") is not None, os.environ.get("VIRTUAL_ENV", ""), _requirements(),
        )  # fmt: skip


def missing(what: str, extra: str) -> str:
    """Return one line for who asked for what an extra brings: ``tables need more libraries: pip install …``."""
    return f"{what}: {install_command(extra)}"


def require(what: str, extra: str, *modules: str) -> None:
    """Raise `MissingExtraError` if a module of an extra is not installed."""
    __tracebackhide__ = True
    for name in modules:
        if not is_installed(name):
            raise MissingExtraError(missing(f"{what} needs {name}", extra), name=name)


def is_installed(name: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def install_command(extra: str, at: Installation | None = None) -> str:
    """Return the command that adds an extra to an installation, to this one by default."""
    at = at or Installation.here()
    wanted = f"{DISTRIBUTION}[{extra}]"
    if (at.prefix / _PIPX).exists():
        libraries = _libraries(at.requirements, extra)
        return join(["pipx", "inject", DISTRIBUTION, *libraries] if libraries else [*_PIPX_AGAIN, wanted])
    if (at.prefix / _UV_TOOL).exists():
        return _uv_tool(at.prefix / _UV_TOOL, extra)
    if at.prefix == at.base_prefix and (at.stdlib / _MANAGED).exists():
        return f"pipx install {quote(wanted)}"
    if not at.has_pip and _has_uv(at.prefix / _ENVIRONMENT):
        return f"uv pip install --python {quote(at.executable)} {quote(wanted)}"
    if at.active and at.has_pip and Path(at.active) == at.prefix:
        return f"pip install {quote(wanted)}"
    return f"{quote(at.executable)} -m pip install {quote(wanted)}"


def _requirements() -> tuple[str, ...]:
    from importlib.metadata import PackageNotFoundError, requires  # on use: as in `version`

    try:
        return tuple(requires(DISTRIBUTION) or ())
    except PackageNotFoundError:
        return ()


def _libraries(requirements: tuple[str, ...], extra: str) -> list[str]:
    """Return what an extra requires, without the extra's own marker."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    _collect(requirements, extra, found, seen)
    return [*found]


def _collect(requirements: tuple[str, ...], extra: str, found: dict[str, None], seen: set[str]) -> None:
    seen.add(extra)
    for each in requirements:
        wanted, _, marker = each.partition(";")
        of = _OF_EXTRA.search(marker)
        if of is None or of[1] != extra:
            continue
        own = _OWN_EXTRAS.match(wanted)
        if own is None:
            rest = _OF_EXTRA.sub("", marker).strip(" ()")
            found[f"{wanted.strip()}; {rest}" if rest else wanted.strip()] = None
            continue
        for name in own[1].split(","):
            if name.strip() not in seen:
                _collect(requirements, name.strip(), found, seen)


def _uv_tool(receipt: Path, extra: str) -> str:
    """Return the command that installs the tool as its receipt says, and with one more extra."""
    extras, others = {extra}, list[str]()
    for each in _received(receipt):
        if each.get("name") == DISTRIBUTION:
            extras |= {str(name) for name in each.get("extras", ())}
        elif each.get("name"):
            others += ["--with", f"{each['name']}{each.get('specifier', '')}"]
    return join(["uv", "tool", "install", *others, f"{DISTRIBUTION}[{','.join(sorted(extras))}]"])


def _received(receipt: Path) -> Iterator[dict[str, Any]]:
    """Yield the requirements of a receipt of uv's; none of one that can't be read."""
    try:
        listed = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield each


def _has_uv(configuration: Path) -> bool:
    """Return whether uv made an environment: it writes its version into the configuration."""
    try:
        lines = configuration.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in lines)
