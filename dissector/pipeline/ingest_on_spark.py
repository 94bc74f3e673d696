"""Ingests captures in Spark's tasks."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from dissector.core.text import counted
from dissector.pipeline.background_scan import BackgroundScan
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.ingest import IngestResult, ingest
from dissector.pipeline.ingest_run import IngestRun
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.scan import scan_files
from dissector.pipeline.stage_progress import Report, stage
from dissector.pipeline.tls_secrets import TlsSecrets


def ingest_on_spark(
    spark: SparkSession, paths: Sequence[str], out: str, options: WriteOptions, *, parts: int | None = None,
    report: Report = lambda stage, done, total: None, ahead: BackgroundScan | None = None,
    key_logs: Sequence[str] = (), again: bool = False,
) -> IngestResult:  # fmt: skip
    """Ingest captures into the tables of a storage, in `parts` partitions or as many as are useful; `ahead` has scanned
    some of them. Raises `StorageError` if it can't be written to, and `CaptureError` if a key log can't be opened."""
    secrets = TlsSecrets(key_logs)

    def scan() -> list[FileScan]:
        with stage(spark, f"scanning {counted(len(paths), 'file')}", report):
            return scan_files(spark, paths, ahead)

    return ingest(
        out, options, scan, lambda storage, run, scans: IngestRun(
            spark, storage, run.epoch, run.folder, scans, options, report, parts, secrets
        ), again=again,
    )  # fmt: skip
