"""A file of rules:

    [[fault]]
    name = "leader-moves"
    rule = 'api == Produce && topic == "orders": error NOT_LEADER_OR_FOLLOWER, first 3'

Rules are asked in the order of the file. A file that can't be used raises `FaultFileError`, one plain line.
"""

from pathlib import Path
from typing import Final

from dissector.core.text import clean, os_reason
from dissector.core.toml_text import read_toml
from dissector.proxy_server.faults.errors import FaultError
from dissector.proxy_server.faults.rules import FaultRule, read_rule

MOST_BYTES: Final = 1 << 20
MOST_RULES: Final = 1000
_KEYS: Final = {"name", "rule"}


class FaultFileError(ValueError):
    """A file of rules that can't be used."""


def read_file(path: str) -> list[FaultRule]:
    """Return the rules of a file. Raises `FaultFileError`."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise FaultFileError(clean(f"{path}: {os_reason(error)}")) from None
    if len(data) > MOST_BYTES:
        raise FaultFileError(clean(f"{path}: more than {MOST_BYTES:,} bytes"))
    try:
        tables = read_toml(data.decode()).get("fault")
    except UnicodeDecodeError:
        raise FaultFileError(clean(f"{path}: not UTF-8")) from None
    except ValueError as error:
        raise FaultFileError(clean(f"{path}: {error}")) from None
    if not isinstance(tables, list) or not tables:
        raise FaultFileError(clean(f"{path}: no [[fault]] with a name and a rule"))
    if len(tables) > MOST_RULES:
        raise FaultFileError(clean(f"{path}: more than {MOST_RULES:,} rules"))
    found = [_rule(path, number, table) for number, table in enumerate(tables, 1)]
    names = [each.name for each in found if each.name]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise FaultFileError(clean(f"{path}: two rules have the name {twice}"))
    return found


def _rule(path: str, number: int, table: object) -> FaultRule:
    what = f"{path}: fault {number}"
    if not isinstance(table, dict) or not isinstance(table.get("rule"), str):
        raise FaultFileError(clean(f"{what}: rule = '…' is missing"))
    if others := sorted(table.keys() - _KEYS):
        raise FaultFileError(clean(f"{what}: unknown key {others[0]}; a fault has a name and a rule"))
    name = table.get("name", "")
    if not isinstance(name, str):
        raise FaultFileError(clean(f"{what}: its name is no text"))
    try:
        return read_rule(table["rule"], name)
    except FaultError as error:
        raise FaultFileError(clean(f"{what}: {error}")) from None
