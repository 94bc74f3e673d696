"""Which rows of `exchanges` an ingest has written, as conditions in SQL on that table."""

from collections.abc import Iterable
from typing import Final

from dissector.tables.data_files import DataFile
from dissector.tables.schemas import BY_NAME, KEYS, ROW_KEY
from dissector.tables.sql import rows_of_files, where

_KEY: Final = ", ".join(ROW_KEY)


def of_run(epoch: int) -> str:
    """Those of a run that is no micro-batch: these have one epoch together."""
    return f"epoch = {epoch}"


def of_files(uri: str, files: Iterable[DataFile]) -> str:
    """Those in data files of a storage of this machine, and those of earlier files that get a finding there which
    replaces none."""
    found: dict[str, list[str]] = {"exchanges": [], "findings": []}
    for each in files:
        if each.table in found:
            found[each.table].append(f"{uri}/{each.path}")
    rows, findings = (rows_of_files((*KEYS, *BY_NAME[name].columns), paths) for name, paths in found.items())
    new = where(findings, "replaces IS NULL")
    return f"({_KEY}) IN (SELECT {_KEY} FROM ({rows}) UNION SELECT {_KEY} FROM ({new}))"
