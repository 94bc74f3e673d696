"""Captures of TLS in a ring that is followed: they are decrypted, and nothing that is left has a secret."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.ring_follower import Follower, MicroBatchReport
from tests.pipeline.test_encrypted import parted
from tests.pipeline.test_encrypted_on_spark import JAVA, files_of, found, secrets_of, without_epoch
from tests.pipeline.test_micro_batch import cut
from tests.pipeline.test_ring_follower import taken

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_a_followed_ring_is_decrypted_and_keeps_no_secret(tmp_path: Path) -> None:
    bare, log, lines = parted(JAVA, tmp_path)
    ring, out = tmp_path / "ring", tmp_path / "tables"
    ring.mkdir()
    paths = [plan.path for plan in cut(bare, ring, 3)]
    options = WriteOptions(key_logs=True)
    follower = Follower(str(out), options, lambda report: None, [str(log)], parts=1)
    left: list[bytes] = []
    for path in paths:
        follower.micro_batch([taken(Path(path))])
        left += files_of(out)  # the carry-over as well, which the next micro-batch removes
    follower.end()
    here = tmp_path / "here"
    ingest_here(paths, str(here), options, key_logs=[str(log)])
    assert without_epoch(out) == without_epoch(here)
    assert any("'kind': 'exchange'" in row for row in without_epoch(out)["exchanges"])
    assert len(left) > 10
    assert not found(secrets_of(lines), [*left, *files_of(out)])


@pytest.mark.long
def test_a_follower_says_once_what_decrypts_with_secrets_that_come_late(tmp_path: Path) -> None:
    bare, log, _ = parted(JAVA, tmp_path)
    ring, out, reports = tmp_path / "ring", tmp_path / "tables", list[MicroBatchReport]()
    ring.mkdir()
    late = tmp_path / "late"
    late.touch()
    paths = [plan.path for plan in cut(bare, ring, 2)]
    options = WriteOptions(key_logs=True)
    follower = Follower(str(out), options, reports.append, [str(late)], parts=1)
    for path in paths:
        follower.micro_batch([taken(Path(path))])
    follower.end()
    [advice] = (each.message for report in reports for each in report.problems if "decrypts it" in each.message)
    assert f"kdissect tables replace {out} FILES --keylog FILE decrypts it" in advice
    ingest_here(paths, str(out), options, key_logs=[str(log)], again=True)
    assert any("'kind': 'exchange'" in row for row in without_epoch(out)["exchanges"])
