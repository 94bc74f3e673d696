-- How long does each broker take to answer a Produce, minute by minute?
SELECT server, date_trunc('minute', time) AS minute, count(*) AS requests,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY latency_ns) / 1e6 AS p99_ms
FROM exchanges
WHERE api = 'Produce' AND latency_ns IS NOT NULL
GROUP BY server, date_trunc('minute', time)
ORDER BY server, minute
