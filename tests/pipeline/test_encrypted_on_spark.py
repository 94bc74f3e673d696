"""Captures of TLS on Spark: the tables are those of one process, and nothing that a run leaves has a secret."""

import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tls.key_log import KeyLog
from tests.conftest import ENCRYPTED
from tests.needs import needs
from tests.pipeline.contents import rows_that_count
from tests.pipeline.events import logged
from tests.pipeline.test_encrypted import parted
from tests.pipeline.test_lone_files import LOGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]
JAVA = next(path for path in ENCRYPTED if path.stem == "java-1.3")
OLDER = next(path for path in ENCRYPTED if path.stem == "java-1.2-resumed")


def secrets_of(lines: list[bytes]) -> set[bytes]:
    keys = KeyLog()
    keys.add_lines(lines)
    return {secret for random in keys.client_randoms for secret in keys.secrets(random).values()}


def forms(secret: bytes) -> Iterator[bytes]:
    """A secret as bytes, in hex, and both in base64, wherever in a longer text they begin."""
    for each in (secret, secret.hex().encode(), secret.hex().upper().encode()):
        yield each
        for before in range(3):
            of_more = b64encode(b"x" * before + each)
            yield of_more[4 if before else 0 : -4]  # without the characters that depend on its neighbours


def found(secrets: Iterable[bytes], texts: list[bytes]) -> list[bytes]:
    """Which secrets are in one of the texts."""
    return [secret for secret in secrets if any(form in text for form in forms(secret) for text in texts)]


def files_of(*folders: Path) -> list[bytes]:
    return [each.read_bytes() for folder in folders for each in folder.rglob("*") if each.is_file()]


def without_epoch(folder: Path) -> dict[str, list[str]]:
    tables = rows_that_count(folder)
    return {
        name: sorted(
            repr({key: cell for key, cell in row.items() if key not in ("epoch", "path", "options")}) for row in rows
        )
        for name, rows in tables.items()
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
    left = [done.stdout, done.stderr, *files_of(work, events, out)]
    assert len(left) > 10
    secrets = secrets_of([*lines, *others])
    assert len(secrets) > 8
    assert not found(secrets, left)


@pytest.mark.parametrize("secret", [bytes(range(32)), b"\xff" * 48])
def test_a_secret_is_found_in_each_form(secret: bytes) -> None:
    """Else it would be no proof that none is found."""
    log = b"CLIENT_RANDOM 00 " + secret.hex().encode()
    for before in range(4):
        for text in (secret, log):
            longer = b"-" * before + text + b"\n"
            assert found([secret], [longer]) == found([secret], [b64encode(longer)]) == [secret]
            assert not found([secret], [longer.replace(text[-9:], b"")])


def test_sent_secrets_are_removed_although_there_are_no_packets(spark: "SparkSession", tmp_path: Path) -> None:
    """They are sent to be used for packets, and a log segment has none."""
    from dissector.pipeline.ingest_on_spark import ingest_on_spark

    _, log, lines = parted(JAVA, tmp_path)
    sent = Path(spark.sparkContext._temp_dir)  # where the driver puts a broadcast
    paths, options = [str(LOGS[0])], WriteOptions(key_logs=True)
    assert ingest_on_spark(spark, paths, str(tmp_path / "tables"), options, key_logs=[str(log)]).read == 1
    assert not found(secrets_of(lines), files_of(sent))
