"""The files of this program and its libraries, for a process that goes on as a user who may not go where they are.

Python imports some modules late, and tables are read late. Where root has installed the program or Python under a
folder that is root's alone (its home, say), the new user can't come there by name any more. So each folder on the
import path is opened before, and what can't be reached by its name afterwards is reached by its descriptor:
``/proc/self/fd/N`` stands for the folder, in the import path and in all modules that are loaded.

Invariants: no right is kept by that. Files that only root may read stay unreadable, and are one plain line if the
program is among them; a folder of the import path that nothing was loaded from, as the working folder, is left out.
"""

import os
import sys
from collections.abc import Iterable
from importlib import invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Final

from dissector.capture.errors import CaptureError
from dissector.capture.live.privileges import User
from dissector.core.files import is_directory

_PACKAGES: Final = Path(__file__).parents[3]
"""The folder of this package: the import path may have it under another name."""
_READ_FOLDER: Final = os.R_OK | os.X_OK


class ProgramFiles:
    """The folders that modules come from, opened while this process may open them."""

    def __init__(self) -> None:
        given = [each for each in (*sys.path, str(_PACKAGES)) if is_directory(each)]
        folders = {*given, *map(os.path.realpath, given)}
        self._open = {folder: os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in folders}

    def stay_reachable(self, user: User | None) -> None:
        """Have all that is loaded later come from where the new user reaches it. Raises `CaptureError` if that user may
        not read it."""
        moved: dict[str, str] = {}
        for folder, number in self._open.items():
            if os.access(folder, _READ_FOLDER):
                os.close(number)
                continue
            moved[folder] = f"/proc/self/fd/{number}"
        self._open = {}
        if moved:
            _move(moved)
        sys.path[:] = (path for path in sys.path if path not in moved.values() or os.access(path, _READ_FOLDER))
        loaded = {path for module in list(sys.modules.values()) for path in _folders(module)}
        unread = next((path for path in sorted(loaded) if not os.access(path, _READ_FOLDER)), None)
        if unread is not None:
            name = "this user" if user is None else user.name
            where = os.path.realpath(unread)
            raise CaptureError(
                f"{where}: {name} may not read it, and kdissect does not dissect as root: chmod -R a+rX {where}"
            )


def _move(moved: dict[str, str]) -> None:
    """Replace names of folders by others, wherever Python looks for what it loads later."""

    def now(path: str) -> str:
        inside = (folder for folder in moved if path == folder or path.startswith(f"{folder}/"))
        folder = max(inside, key=len, default="")
        return moved[folder] + path[len(folder) :] if folder else path

    sys.path[:] = map(now, sys.path)
    sys.path_importer_cache.clear()
    for module in list(sys.modules.values()):
        if isinstance(path := getattr(module, "__path__", None), list):
            path[:] = map(now, path)
        for holder, name in ((module, "__file__"), (getattr(module, "__loader__", None), "path")):
            if isinstance(value := getattr(holder, name, None), str):
                setattr(holder, name, now(value))
        for name, constant in list(vars(module).items()):
            if isinstance(constant, Path):
                setattr(module, name, Path(now(str(constant))))
    invalidate_caches()


def _folders(module: ModuleType) -> Iterable[str]:
    """Return the folders that a module was loaded from, and those that its parts are in."""
    path, file = getattr(module, "__path__", None), getattr(module, "__file__", None)
    folders = [*(path if isinstance(path, list) else ()), *([str(Path(file).parent)] if isinstance(file, str) else ())]
    return [each for each in folders if os.path.lexists(each)]
