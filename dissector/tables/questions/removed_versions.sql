-- Which clients use versions that Kafka 4.0 removed (KIP-896)?
SELECT e.client_id, e.api, e.api_version, l.low AS lowest, count(*) AS requests
FROM exchanges e
JOIN (VALUES
  (0, 3), (1, 4), (2, 1), (8, 2), (9, 1), (19, 2), (20, 1), (23, 2), (29, 1), (30, 1), (31, 1), (32, 1), (34, 1), (35, 1),
  (38, 1), (39, 1), (40, 1), (41, 1)
) AS l(api_key, low) ON e.api_key = l.api_key
WHERE e.api_version < l.low
GROUP BY e.client_id, e.api, e.api_version, l.low
ORDER BY requests DESC, e.api, e.client_id, e.api_version
