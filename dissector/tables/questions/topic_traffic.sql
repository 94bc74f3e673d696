-- Which topics exist, and how many bytes go in and out?
SELECT topic, count(DISTINCT p.partition) AS partitions,
       CAST(sum(CASE WHEN api = 'Produce' THEN records_size ELSE 0 END) AS BIGINT) AS produced_bytes,
       CAST(sum(CASE WHEN api = 'Fetch' THEN records_size ELSE 0 END) AS BIGINT) AS fetched_bytes,
       count(error) AS errors, min(p.time) AS first_time, max(p.time) AS last_time
FROM partitions p
GROUP BY topic
ORDER BY produced_bytes DESC, fetched_bytes DESC, topic
