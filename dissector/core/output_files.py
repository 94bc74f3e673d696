"""Why a file can't be written, as a user sees it: of a path, the part that is wrong."""

from pathlib import Path

from dissector.core.text import os_reason


def write_reason(path: str, error: Exception) -> str:
    """Return why the system refused to write a file: ``there is no folder reports``, or its own words."""
    missing = None
    try:
        for folder in Path(path).parents:
            if folder.is_dir():
                break
            if folder.exists():
                return f"{folder} is a file, not a folder"
            missing = folder
    except OSError:  # a name that is too long, a folder that nobody may look into
        return os_reason(error)
    if isinstance(error, FileNotFoundError) and missing is not None:
        return f"there is no folder {Path(path).parent}"
    return os_reason(error)
