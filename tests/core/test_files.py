"""Files that are read after the right to open them is gone."""

import subprocess
import sys
from pathlib import Path

from tests.needs import as_another_user


@as_another_user
def test_what_was_kept_is_read_again_as_somebody_else_and_nothing_more(tmp_path: Path) -> None:
    kept, other = tmp_path / "kept", tmp_path / "other"
    for path in (kept, other):
        path.write_text("first")
        path.chmod(0o600)
    code = f"""
import os
from dissector.core.files import keep_open, open_kept
keep_open({str(kept)!r})
keep_open({str(tmp_path / "missing")!r})
os.setuid(65534)
for _ in range(2):
    with open_kept({str(kept)!r}) as file:
        file.seek(2)
        print(file.read())
for path in ({str(other)!r}, {str(tmp_path / "missing")!r}):
    try:
        open_kept(path)
    except PermissionError:
        print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["b'rst'", "b'rst'", "refused", "refused"]
