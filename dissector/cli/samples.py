"""`kdissect samples`: copy the captures that come with the program."""

from pathlib import Path

from dissector.cli.errors import UsageError
from dissector.core.files import write_reason
from dissector.core.text import clean
from dissector.samples import FOLDER, SAMPLES


def copy_samples(folder: str) -> int:
    """Copy all samples into a folder and print what is in each. Raises `UsageError` if a file there is another one."""
    names = [f"{folder.rstrip('/') or '/'}/{name}" for name in SAMPLES]
    for path, name in zip(map(Path, names), SAMPLES, strict=True):
        try:
            _copy(FOLDER / name, path)
        except OSError as error:
            raise UsageError(f"{path}: {write_reason(str(path), error)}") from None
    width = max(map(len, names))  # printed when all are there: `| head` closes the pipe early
    for path, words in zip(map(Path, names), SAMPLES.values(), strict=True):
        print(f"{clean(str(path)):{width}}  {words}")
    return 0


def _copy(sample: Path, path: Path) -> None:
    data = sample.read_bytes()
    if path.exists() and path.read_bytes() != data:
        raise UsageError(f"{path}: a different file of this name exists; give another folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
