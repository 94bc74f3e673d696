-- Why do consumer groups rebalance? Each generation, by what its first member said or did (KIP-800, KIP-848).
-- plot: rebalances
SELECT group_id, cause, count(*) AS rebalances, max(members) AS most_members, min(began) AS first_time, max(began) AS last_time
FROM (
  SELECT group_id, generation, min(time) AS began, count(DISTINCT member_id) AS members,
         min_by(CASE WHEN reason IS NOT NULL THEN reason
                     WHEN event = 'join' THEN 'a new member joined'
                     WHEN event = 'rejoin' THEN 'a member joined again'
                     ELSE 'its assignment changed' END, time_ns) AS cause
  FROM groups
  WHERE event IN ('join', 'rejoin', 'epoch') AND generation IS NOT NULL AND error IS NULL
  GROUP BY group_id, generation
) AS generations
GROUP BY group_id, cause
ORDER BY rebalances DESC, group_id, cause
