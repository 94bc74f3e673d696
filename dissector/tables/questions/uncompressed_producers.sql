-- Which clients produce without compression, and how much?
SELECT topic, client_id, CAST(sum(CASE WHEN codec = 'none' THEN size ELSE 0 END) AS BIGINT) AS plain_bytes,
       CAST(sum(size) AS BIGINT) AS bytes, avg(record_count) AS records_a_batch
FROM batches
WHERE api = 'Produce' AND NOT control
GROUP BY topic, client_id
HAVING sum(CASE WHEN codec = 'none' THEN size ELSE 0 END) > 0
ORDER BY plain_bytes DESC, topic, client_id
