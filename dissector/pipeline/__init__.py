"""Captures to tables on Apache Spark: runs the dissector's stages in parallel, one partition of the packets each.

No logic about packets or Kafka is in here. Files are scanned (`file_scan`), packets are shuffled by pairs of endpoints
(`splits`, `shuffled`), each partition is dissected like a capture (`partition_rows`), and its rows go
to tables (`dissector.tables`, `ingest`). A ring of files is followed by `ring`, `micro_batch` and `ring_follower`.
"""
