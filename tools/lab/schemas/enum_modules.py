"""Write Kafka's numbers as Python enums, from the imported tables. Run as ``python -m tools.lab.schemas.enum_modules``.

`make schemas` does this too, after an import. Needs no Java: it reads files of the repository alone.

In: `tables/index.json` (API keys), `errors.json` (error codes), `enums.json` (the enums in `FIELD_ENUMS`).
Out: `api_keys.py`, `error_codes.py` and `field_enums.py` in `dissector/protocol/schema`.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dissector.protocol.schema.importer.run import SCHEMA_FOLDER

FIELD_ENUMS: Final = (
    "CompressionType", "ControlRecordType", "CoordinatorType", "EndpointType", "FetchSessionEpoch", "GroupMemberEpoch",
    "ShareSessionEpoch",
)  # fmt: skip
"""Those that code here compares with. Names of all others are only shown, and come from `schema/enums.py`."""

_HEADER: Final = '''"""{summary}

Written by ``python -m tools.lab.schemas.enum_modules`` from {sources}: do not edit.
"""

from enum import IntEnum
'''
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def enum_modules(folder: Path = SCHEMA_FOLDER) -> dict[str, str]:
    """The texts of the modules by file name, from the tables in `folder`."""
    messages = _json(folder / "tables" / "index.json")["messages"]
    requests = sorted((each for each in messages if each["type"] == "request"), key=lambda each: int(each["apiKey"]))
    api_keys = {_constant(each["name"].removesuffix("Request")): int(each["apiKey"]) for each in requests}
    error_codes = {each["name"]: int(each["code"]) for each in _json(folder / "errors.json")}
    enums = _json(folder / "enums.json")
    fields = [_field_enum(name, enums[name]) for name in FIELD_ENUMS]
    apis = _enum("ApiKey", "An API by its key on the wire. An API that a user imported is a plain int.", api_keys)
    errors = _enum("ErrorCode", "An error by its code on the wire. A newer broker's error is a plain int.", error_codes)
    return {
        "api_keys.py": _module("The keys of Kafka's APIs.", "`tables/index.json`", apis),
        "error_codes.py": _module("Kafka's error codes.", "`errors.json`", errors),
        "field_enums.py": _module("Numbers with names in fields of Kafka's messages.", "`enums.json`", *fields),
    }


def write_enum_modules() -> None:
    """Write the modules into the schema package."""
    for name, text in enum_modules().items():
        (SCHEMA_FOLDER / name).write_text(text, encoding="utf-8", newline="\n")


def _module(summary: str, sources: str, *classes: str) -> str:
    return "\n\n".join((_HEADER.format(summary=summary, sources=sources), *classes))


def _enum(name: str, summary: str, members: Mapping[str, int]) -> str:
    lines = (f"    {member} = {number}\n" for member, number in members.items())
    return f'class {name}(IntEnum):\n    """{summary}"""\n\n{"".join(lines)}'


def _field_enum(name: str, row: Mapping[str, Any]) -> str:
    return _enum(name, f"Apache's ``{row['source']}``.", {word: int(number) for number, word in row["names"].items()})


def _constant(name: str) -> str:
    """``AddOffsetsToTxn`` as Kafka's `ApiKeys` spells it: ``ADD_OFFSETS_TO_TXN``."""
    return _WORD_START.sub("_", name).upper()


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    write_enum_modules()
