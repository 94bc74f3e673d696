-- How many records per second does each partition get, and how unevenly? A skew of 1 is the mean of the topic.
WITH partitions AS (
  SELECT topic, partition, CAST(sum(record_count) AS BIGINT) AS records
  FROM batches
  WHERE api = 'Produce' AND NOT control
  GROUP BY topic, partition
), times AS (
  SELECT topic, (max(time_ns) - min(time_ns)) / 1e9 AS seconds
  FROM batches
  WHERE api = 'Produce' AND NOT control
  GROUP BY topic
)
SELECT p.topic, p.partition, p.records, p.records / nullif(t.seconds, 0) AS records_a_second,
       p.records / avg(p.records) OVER (PARTITION BY p.topic) AS skew
FROM partitions p
JOIN times t ON p.topic = t.topic
ORDER BY p.topic, p.partition
