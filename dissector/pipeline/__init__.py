"""Captures to tables on Apache Spark: the stages that everybody else calls, a part of the packets each.

No logic about packets or Kafka is in here. A capture is looked over once (`plan`), its packets are dealt out by pairs
of endpoints (`segments`, `source`), each part is read as the whole capture would be (`parts`), and what comes of it
goes to tables (`tables`, `ingest`). Files that a ring still writes are followed: `ring`, `portion`, `follow`.
"""
