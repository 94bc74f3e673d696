-- Why do consumer groups rebalance? Clients say so since JoinGroup v8 (KIP-800).
-- plot: joins
SELECT get_json_object(b.request, '$.body.group_id') AS group_id,
       coalesce(nullif(get_json_object(b.request, '$.body.reason'), ''), 'no reason given') AS reason,
       count(*) AS joins, count(DISTINCT get_json_object(b.response, '$.body.generation_id')) AS generations
FROM exchanges e
JOIN bodies b ON e.capture = b.capture AND e.packet = b.packet AND e.start = b.start
WHERE e.api = 'JoinGroup'
GROUP BY 1, 2
ORDER BY joins DESC, group_id, reason
