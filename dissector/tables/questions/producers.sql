-- Which clients, in which version, produce to which topic?
SELECT b.topic, b.client_id, c.software_name, c.software_version, count(DISTINCT b.connection) AS connections,
       CAST(sum(b.record_count) AS BIGINT) AS records, CAST(sum(b.size) AS BIGINT) AS bytes
FROM batches b
LEFT JOIN connections c ON b.connection = c.connection
WHERE b.api = 'Produce' AND NOT b.control
GROUP BY b.topic, b.client_id, c.software_name, c.software_version
ORDER BY b.topic, records DESC, b.client_id, c.software_version
