-- Which clients are throttled by quotas, and for how long?
SELECT client_id, server, api, count(*) AS throttled, max(throttle_time_ms) AS longest_ms,
       CAST(sum(throttle_time_ms) AS BIGINT) AS total_ms, min(time) AS first_time, max(time) AS last_time
FROM exchanges
WHERE throttle_time_ms > 0
GROUP BY client_id, server, api
ORDER BY total_ms DESC, client_id, server, api
