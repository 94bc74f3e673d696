"""Fetch Kafka's jars with Maven; import their schemas, errors and enums. Run as ``python -m tools.lab.schemas``.

Invariants:
  * run twice, it changes nothing the second time;
  * exit code 0: tables, errors and enums are as the releases have them; 1: they disagree, or a jar is broken, and all
    is as before; 2: java or Maven is missing or failed.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from dissector.protocol.schema.importer.run import SCHEMA_FOLDER, ImportResult, import_jars
from dissector.protocol.schema.model import SchemaError
from tools.lab.schemas.enum_modules import write_enum_modules
from tools.lab.tools import schema_jars

RELEASES: Final = ("3.6.2", "3.7.2", "3.9.2", "4.3.1", "4.4.0")
"""Oldest first. 3.9.2 is the last with the versions that 4.0 removed; 3.6.2 and 3.7.2 have previews that were laid out
otherwise, 4.3.1 names that 4.4 changed. To follow a new release of Kafka, add it, and read the diff of the tables."""

HERE: Final = Path(__file__).parent
BUILD: Final = HERE.parents[2] / "build" / "schemas"
SETTINGS: Final = HERE.parents[1] / "golden" / "java-settings.txt"
"""For a test: the names that the table of clients' settings may have for Java's."""


class ToolError(Exception):
    """A program that the import needs is missing or failed."""


def main() -> int:
    """Do all of it; the exit code."""
    try:
        for tool in ("mvn", "java", "javac"):
            if shutil.which(tool) is None:
                raise ToolError(f"{tool} is not installed: a JDK (17 or later) and Maven are needed")
        shutil.rmtree(BUILD, ignore_errors=True)  # from nothing: a jar that was copied by half would stay for ever
        folders = {release: fetch(release) for release in RELEASES}
        errors = printed("PrintErrors", folders[RELEASES[-1]])
        enums = printed("PrintEnums", folders[RELEASES[-1]])
        settings = printed("PrintSettings", folders[RELEASES[-1]])
        configs = config_types([json.loads(printed("PrintConfigs", folder)) for folder in folders.values()])
        found = import_jars({release: schema_jars(release, folder) for release, folder in folders.items()})
    except ToolError as error:
        print(f"schemas: {error}", file=sys.stderr)
        return 2
    except SchemaError as error:
        print(f"schemas: {error}", file=sys.stderr)
        return 1
    (SCHEMA_FOLDER / "errors.json").write_text(errors, encoding="utf-8", newline="\n")
    (SCHEMA_FOLDER / "enums.json").write_text(enums, encoding="utf-8", newline="\n")
    names = json.dumps(configs, indent=2, sort_keys=True)
    (SCHEMA_FOLDER / "config_names.json").write_text(f"{names}\n", encoding="utf-8", newline="\n")
    write_enum_modules()
    SETTINGS.write_text(settings, encoding="utf-8", newline="\n")
    print(_summary(found, errors, enums))
    return 0


def config_types(releases: list[dict[str, str]]) -> dict[str, str]:
    """The types of configs over all releases; a password in one is a password."""
    types: dict[str, str] = {}
    for each in releases:
        types |= {name: kind for name, kind in each.items() if types.get(name) != "PASSWORD"}
    return types


def fetch(release: str) -> Path:
    """The folder with a release's jars and those that they need to run."""
    folder = BUILD / release
    arguments = [f"-Dkafka.version={release}", f"-DoutputDirectory={folder}", "dependency:copy-dependencies"]
    _run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *arguments])
    return folder


def printed(program: str, folder: Path) -> str:
    """What a Java program of this folder says of the release whose jars are in `folder`."""
    classes = BUILD / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    _run(["javac", "-cp", f"{folder}/*", "-d", str(classes), str(HERE / f"{program}.java")])
    return _run(["java", "-cp", f"{folder}/*:{classes}", program])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no output"]
        raise ToolError(f"{command[0]} failed ({done.returncode}): {lines[0]}")
    return done.stdout


def _summary(found: ImportResult, errors: str, enums: str) -> str:
    requests = [m for m in found.messages.values() if m.type == "request"]
    versions = sum(len(list(m.valid_versions)) for m in requests)
    return (
        f"{len(found.messages)} messages, {len(requests)} APIs, {versions} versions of them, "
        f"{len(found.alternatives)} other layouts, {len(json.loads(errors))} error codes, "
        f"{len(json.loads(enums))} enums"
    )


if __name__ == "__main__":
    sys.exit(main())
