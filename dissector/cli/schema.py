"""`kdissect schema`: import, list, remove and compare releases of Kafka."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from dissector.cli.errors import NEGATIVE, print_error
from dissector.cli.render.pages import DIM, NAME, NOTE, TITLE, Line, print_lines, table, wrapped
from dissector.protocol.explain.release_diff import MessageDiff, ReleaseSide, diff, kinds, release_side
from dissector.protocol.explain.releases import known_releases
from dissector.protocol.schema.imported import folder, labels
from dissector.protocol.schema.importer.user_releases import ImportedNames, import_user_release, remove
from dissector.protocol.schema.loader import entries, message
from dissector.protocol.schema.model import SchemaError


def import_release(jars: Sequence[str], name: str | None) -> int:
    """Import a release and print its new messages; return the exit code."""
    found = [each for jar in jars for each in _jars_of(Path(jar))]
    return print_lines(_imported(import_user_release(found, name)))


def _jars_of(path: Path) -> list[Path]:
    """Return a jar, or of a folder (a release's `libs`) all jars that are Kafka's own. Raises `SchemaError`."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("kafka*.jar"))
    if not found:
        raise SchemaError(f"{path}: not a file, and no folder with kafka*.jar")
    return found


def _imported(names: ImportedNames) -> Iterator[Line]:
    yield [(f"{names.label}: {names.count} messages, kept in {names.folder}", TITLE)]
    if names.new:
        yield from _listed("new", names.new)
    else:
        yield [("  nothing in it is new", "")]
    if names.left_out:
        yield from _listed("left out", names.left_out)
    if names.otherwise:
        yield from _listed("named or laid out otherwise in the tables, which stay as they are", names.otherwise)


def _listed(words: str, names: Sequence[str]) -> Iterator[Line]:
    yield [(f"  {words}:", NOTE)]
    yield from wrapped("; ".join(names), 4)


def list_releases() -> int:
    """Print the known releases; return the exit code."""
    imported = labels()
    found = [message(entry.name).releases for entry in entries()]
    rows = [
        (label, "imported" if label in imported else "shipped", str(sum(label in each for each in found)))
        for label in known_releases()
    ]
    return print_lines(table(("release", "", "messages"), rows, (NAME, NOTE, ""), indent=0))


def remove_release(name: str) -> int:
    """Remove an imported release; return the exit code."""
    if not remove(name):
        known = f"{', '.join(labels())} are" if labels() else f"no release is, in {folder()}"
        return print_error(f"{name} is not imported; {known}")
    return print_lines([[(f"{name}: removed", "")]])


def diff_releases(one: str, other: str) -> int:
    """Print the differences; return the exit code: 0 for the same, 1 for different."""
    first, second = release_side(one), release_side(other)
    found = list(diff(first, second))
    print_lines(_difference(first, second, found))
    return NEGATIVE if found else 0


def _difference(one: ReleaseSide, other: ReleaseSide, found: list[MessageDiff]) -> Iterator[Line]:
    counts = f"{len(one.versions)} and {len(other.versions)} messages, {len(found)} differ"
    yield [(f"{one.label} and {other.label}", TITLE), (f"  {counts}", DIM)]
    for side, opposite in ((one, other), (other, one)):
        if only := sorted(kinds(side) - kinds(opposite)):
            yield [(f"  not compared, as only {side.label} has any: messages of type {', '.join(only)}", DIM)]
    for each in found:
        if not each.was:
            yield [("  added    ", NOTE), (each.name, NAME), (f"  v{each.now}", "")]
        elif not each.now:
            yield [("  removed  ", NOTE), (each.name, NAME), (f"  v{each.was}", "")]
        else:
            versions = f"v{each.was}" if each.was == each.now else f"v{each.was} became v{each.now}"
            yield [("  changed  ", NOTE), (each.name, NAME), (f"  {versions}", "")]
            yield from _steps(each)


def _steps(each: MessageDiff) -> Iterator[Line]:
    changed = dict(each.steps)
    for version in each.new_versions:
        changes = [str(change) for change in changed.get(version, ())] or ["the same layout as the version before"]
        yield from ([(f"      v{version} is new: ", DIM), (change, "")] for change in changes)
    for version, step in each.steps:
        if each.was.contains(version):
            yield from ([(f"      v{version}: ", DIM), (str(change), "")] for change in step)
