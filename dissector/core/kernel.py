"""The native kernel, a shared object that is loaded on first use.

`protocol/kernel/build.py` makes it from the C files beside it, when the program is installed. It has one name on every
platform: what a dynamic linker loads depends on the contents of a file, not on its suffix. In a zip file, as Spark's
workers get the package, it is copied out to be loaded.
"""

import ctypes
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissector.core.files import package_file

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

PATH = package_file("protocol", "kernel", "libkernel.so")
"""Tests with sanitizers load another (`tests/conftest.py`)."""
_TYPES: Final = {"P": ctypes.c_void_p, "q": ctypes.c_int64, "i": ctypes.c_int32}


class KernelError(Exception):
    """The shared object is missing or can't be loaded. Its text is one plain line that says what to do."""


@cache
def library() -> ctypes.CDLL:
    """Return the shared object of this installation. Raises `KernelError`."""
    return load(PATH)


def function(name: str, *types: type) -> Callable[..., int]:
    """Return a function of `kernel.h` with arguments of these types that returns a number. Raises `KernelError`."""
    found: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int64, *types)((f"kernel_{name}", library()))
    return found


def kernel_function(name: str, types: str) -> Callable[[], Callable[..., int]]:
    """Return what gives a function of `kernel.h`, which is loaded when it is first asked for; `KernelError` is raised
    then. `types` has a letter for each argument: ``P`` for an address, ``q`` for an int64_t, ``i`` for an int32_t."""
    return cache(partial(function, name, *(_TYPES[letter] for letter in types)))


def address(data: bytes | memoryview) -> bytes | int:
    """Return what a function takes for the address of bytes, which are not empty; a view is of memory that may be
    written. Whoever keeps a number keeps the memory."""
    return data if isinstance(data, bytes) else ctypes.addressof(ctypes.c_char.from_buffer(data))


def structure_fields(declarations: str) -> list[tuple[str, type]]:
    """Return `_fields_` of a `ctypes.Structure` by its members in C, which are numbers (`int64_t`) and pointers.
    `protocol/kernel/shared.py` puts the same text into the header."""
    members = re.sub(r"/\*.*?\*/", "", declarations, flags=re.DOTALL).replace(";", ",").split(",")
    return [
        (member.split()[-1].lstrip("*"), ctypes.c_void_p if "*" in member else ctypes.c_int64)
        for member in members
        if member.strip()
    ]


def load(path: "Traversable") -> ctypes.CDLL:
    """Return the shared object at a path. Raises `KernelError`."""
    if not path.is_file():
        raise KernelError(f"{path}: not built: install kdissect again, in a clone with `make run`")
    try:
        if isinstance(path, Path):
            return ctypes.CDLL(str(path))
        from importlib.resources import as_file

        with as_file(path) as file:  # it is copied out and removed, and stays loaded
            return ctypes.CDLL(str(file))
    except OSError as error:
        raise KernelError(f"{path}: {error}: install kdissect again, built for this machine") from None
