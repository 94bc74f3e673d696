-- How far behind are consumer groups? The last offset that each group committed, and the last high watermark seen in a fetch.
SELECT c.group_id, c.topic, c.partition, c.committed, w.high_watermark, w.high_watermark - c.committed AS lag, c.time
FROM (
  SELECT p.group_id, p.topic, p.partition, max_by(p.offset, p.time_ns) AS committed, max(p.time) AS time
  FROM partitions p
  WHERE p.api IN ('OffsetCommit', 'TxnOffsetCommit') AND p.error IS NULL
  GROUP BY p.group_id, p.topic, p.partition
) AS c
JOIN (
  SELECT p.topic, p.partition, max_by(p.high_watermark, p.time_ns) AS high_watermark
  FROM partitions p
  WHERE p.high_watermark >= 0
  GROUP BY p.topic, p.partition
) AS w ON c.topic = w.topic AND c.partition = w.partition
ORDER BY lag DESC, c.group_id, c.topic, c.partition
