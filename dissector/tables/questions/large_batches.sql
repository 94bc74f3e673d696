-- How close are batches to the default limit of brokers (message.max.bytes, 1,048,588)?
SELECT topic, client_id, count(*) AS batches, max(size) AS largest, max(size) / CAST(1048588 AS DOUBLE) AS of_limit,
       count(CASE WHEN size > 1048588 THEN 1 END) AS over_limit
FROM batches
WHERE api = 'Produce' AND NOT control
GROUP BY topic, client_id
ORDER BY largest DESC, topic, client_id
