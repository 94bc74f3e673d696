"""The shared object of this package, loaded on first use.

`build.py` makes it from the C files beside it, when the program is installed. It has one name on every platform: what a
dynamic linker loads depends on the contents of a file, not on its suffix.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).with_name("libkernel.so")


class KernelError(Exception):
    """The shared object is missing or can't be loaded. Its text is one plain line that says what to do."""


@cache
def library(path: Path = PATH) -> ctypes.CDLL:
    """Return the shared object. Raises `KernelError`."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        if not path.exists():
            raise KernelError(f"{path}: not built: install kdissect again, in a clone with `make run`") from None
        raise KernelError(f"{path}: {error}: install kdissect again, built for this machine") from None
