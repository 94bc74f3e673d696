"""Captures of TLS on Spark: the tables are those of one process, and nothing that a run leaves has a secret."""

import os
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tls.key_log import KeyLog
from tests.conftest import ENCRYPTED
from tests.needs import needs
from tests.pipeline.contents import rows_that_count
from tests.pipeline.events import logged
from tests.pipeline.test_encrypted import parted

pytestmark = [pytest.mark.slow, pytest.mark.spark]
JAVA = next(path for path in ENCRYPTED if path.stem == "java-1.3")
OLDER = next(path for path in ENCRYPTED if path.stem == "java-1.2-resumed")


def secrets_of(lines: list[bytes]) -> set[bytes]:
    keys = KeyLog()
    keys.add_lines(lines)
    return {secret for random in keys.client_randoms for secret in keys.secrets(random).values()}


def without_epoch(folder: Path) -> dict[str, list[str]]:
    found = rows_that_count(folder)
    return {
        name: sorted(
            repr({key: cell for key, cell in row.items() if key not in ("epoch", "path", "options")}) for row in rows
        )
        for name, rows in found.items()
        if name != "captures"
    }


def test_tables_are_those_of_one_process_and_no_secret_is_left_anywhere(tmp_path: Path) -> None:
    """One capture has its secrets in itself, the other one in a key log."""
    needs("java")
    pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")
    bare, log, lines = parted(JAVA, tmp_path)
    _, _, others = parted(OLDER, tmp_path)
    log.write_bytes(b"\n".join(lines) + b"\n")
    work, events, out = tmp_path / "work", tmp_path / "events", tmp_path / "tables"
    work.mkdir()
    settings = logged(events) | {"spark.local.dir": str(work)}
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    captures = [str(bare), str(OLDER)]
    done = subprocess.run(
        [sys.executable, "-m", "dissector.cli.main", "ingest", *captures, "--keylog", str(log), "--out", str(out),
         "--master", "local[2]", "-v", *conf],
        capture_output=True, text=False, env=os.environ | {"TMPDIR": str(work)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    here = tmp_path / "here"
    ingest_here(captures, str(here), WriteOptions(key_logs=True), key_logs=[str(log)])
    assert without_epoch(out) == without_epoch(here)
    left = [done.stdout, done.stderr]
    left += [each.read_bytes() for folder in (work, events, out) for each in folder.rglob("*") if each.is_file()]
    assert len(left) > 10
    secrets = secrets_of([*lines, *others])
    assert len(secrets) > 8
    for secret in secrets:
        for form in (secret, secret.hex().encode(), secret.hex().upper().encode(), b64encode(secret)):
            assert not any(form in each for each in left)
