"""What the C files share with Python is what Python has."""

import ctypes
import re
from enum import IntEnum
from importlib import import_module
from pathlib import Path

import pytest

from dissector.core.kernel import structure_fields
from dissector.protocol.codec.json_program import SCOPE, Mark
from dissector.protocol.codec.plan import SCALARS
from dissector.protocol.codec.program import Operation, Want
from dissector.protocol.kernel import shared
from dissector.protocol.kernel.json_messages import HOLE, REPORT, Outcome
from dissector.protocol.kernel.shredding import ShredError
from dissector.protocol.records.batch import HEADER
from dissector.protocol.records.columns import ENTRY, BatchError
from dissector.protocol.records.compression import CODECS
from dissector.protocol.schema.field_enums import CompressionType

ROOT = Path(__file__).parents[3]
KERNEL = ROOT / "dissector" / "protocol" / "kernel"


def macro(name: str) -> str:
    found = re.search(rf"^#define {name} (.*)$", shared.header(), re.MULTILINE)
    assert found
    return found[1]


def numbers(name: str) -> dict[str, int]:
    return {key: int(value) for key, value in (each.split(" = ") for each in macro(name).split(", "))}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("OPERATION", Operation),
        ("MARK", Mark),
        ("WANT", Want),
        ("OUTCOME", Outcome),
        ("SHRED_ERROR", ShredError),
        ("BATCH_ERROR", BatchError),
    ],
)
def test_an_enum_has_its_members(name: str, kind: type[IntEnum]) -> None:
    assert numbers(name) == {key: int(value) for key, value in kind.__members__.items()}


@pytest.mark.long
def test_tables_have_their_entries() -> None:
    assert list(numbers("SCALAR")) == [each.upper() for each in SCALARS]
    assert numbers("SCOPE")["SCOPE_NAMES"] == len(SCOPE)
    assert numbers("CODEC") == {f"CODEC_{each.name}": int(each) for each in CompressionType}
    assert (
        macro("CODEC_NAMES")
        == ", ".join(f'[{number:d}] = "{codec.name}"' for number, codec in CODECS.items()) + " /* by number */"
    )
    assert numbers("BATCH_OFFSET")["BATCH_HEADER"] == HEADER.size
    assert macro("ENTRY_FIELDS") == f"int64_t {', '.join(ENTRY.names or ())};"
    assert macro("REPORT_FIELDS") == f"int64_t {', '.join(REPORT.names or ())};"
    assert macro("HOLE_FIELDS") == f"int64_t {', '.join(HOLE.names[:5] if HOLE.names else ())};"


def test_make_compiles_after_an_edit_of_what_is_parsed() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.search(r"^SHARED := (.*)$", text, re.MULTILINE)
    assert found
    assert found[1].split() == list(shared.SOURCES)


def test_an_unchanged_header_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "HEADER", tmp_path / "shared.h")
    shared.write()
    first = shared.HEADER.stat().st_mtime_ns
    shared.write()
    assert shared.HEADER.stat().st_mtime_ns == first
    assert shared.HEADER.read_text(encoding="utf-8") == shared.header()


@pytest.mark.long
def test_structures_have_the_members_of_their_declarations() -> None:
    declared = """
    const uint64_t *first, *second; /* addresses; of two, or of none */
    int64_t count,
      most;
    KernelEntry *entries;
    """
    number, address = ctypes.c_int64, ctypes.c_void_p
    expected = [("first", address), ("second", address), ("count", number), ("most", number), ("entries", address)]
    assert structure_fields(declared) == expected
    for name, path in shared.STRUCTURES.items():
        module = import_module("dissector." + path.removesuffix(".py").replace("/", "."))
        assert macro(f"{name}_FIELDS") == " ".join(getattr(module, name).split())


def test_functions_are_called_with_the_arguments_that_they_have() -> None:
    header = (KERNEL / "kernel.h").read_text(encoding="utf-8")
    declared = {
        name: "".join(
            "P" if "*" in each else {"int64_t": "q", "int32_t": "i"}[each.split()[0]] for each in of.split(",")
        )
        for name, of in re.findall(r"^KERNEL_API int64_t kernel_(\w+)\(([^)]*)\)", header, re.MULTILINE)
    }
    modules = (path.read_text(encoding="utf-8") for path in (ROOT / "dissector").rglob("*.py"))
    called = [pair for text in modules for pair in re.findall(r'kernel_function\("(\w+)", "(\w+)"\)', text)]
    assert len(called) >= 18
    assert [(name, declared[name]) for name, _ in called] == called
