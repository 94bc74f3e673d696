"""Tables for tests that change them: made once in a process, and copied for each test.

An ingest takes as long as what most of these tests are about, and its tables have no path of their own folder.
"""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.delta_log import create_tables


def copy_tables(folder: Path, *files: str, frames: bool = False) -> Path:
    """Make a folder what an ingest of these files into it makes; without files, tables without rows."""
    return Path(shutil.copytree(_made(files, frames), folder, dirs_exist_ok=True))


@functools.cache
def _made(files: tuple[str, ...], frames: bool) -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if files:
        ingest_here(files, str(folder), WriteOptions(frames=frames))
    else:
        create_tables(str(folder))
    return folder
