-- Why do consumer groups rebalance? Each generation, with what its first member said or did (KIP-800, KIP-848).
WITH joins AS (
  SELECT group_id, generation, member_id, event, reason, time, time_ns,
         row_number() OVER (PARTITION BY group_id, member_id ORDER BY time_ns) AS nth
  FROM groups
  WHERE event IN ('join', 'rejoin', 'epoch') AND generation IS NOT NULL AND error IS NULL
), named AS (  -- new members that were given an id, and join with it
  SELECT DISTINCT group_id, member_id
  FROM groups
  WHERE error = 'MEMBER_ID_REQUIRED'
), generations AS (
  SELECT j.group_id, j.generation, min(j.time) AS began, count(DISTINCT j.member_id) AS members,
         min_by(CASE WHEN j.event = 'join' OR (j.nth = 1 AND n.member_id IS NOT NULL) THEN 'a new member joined'
                     WHEN j.reason IS NOT NULL THEN j.reason
                     WHEN j.event = 'rejoin' THEN 'a member joined again'
                     ELSE 'its assignment changed' END, j.time_ns) AS cause
  FROM joins j
  LEFT JOIN named n ON j.group_id = n.group_id AND j.member_id = n.member_id
  GROUP BY j.group_id, j.generation
)
SELECT group_id, cause, count(*) AS rebalances, max(members) AS most_members, min(began) AS first_time, max(began) AS last_time
FROM generations
GROUP BY group_id, cause
ORDER BY rebalances DESC, group_id, cause
