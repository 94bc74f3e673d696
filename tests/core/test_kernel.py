"""The shared object of the kernel: what is said where it is missing or damaged."""

from pathlib import Path

import pytest

from dissector.core.kernel import KernelError, library, load


def test_a_library_that_was_not_built_is_one_plain_line(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"libkernel\.so: not built: install kdissect again.*`make run`$"):
        load(tmp_path / "libkernel.so")


def test_a_library_of_another_machine_is_one_plain_line(tmp_path: Path) -> None:
    path = tmp_path / "libkernel.so"
    path.write_bytes(b"MZ of another system")
    with pytest.raises(KernelError, match=r"^[^\n]+: install kdissect again, built for this machine$"):
        load(path)


def test_it_is_loaded_once() -> None:
    assert library() is library()
