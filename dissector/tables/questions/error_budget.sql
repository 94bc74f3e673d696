-- What share of requests fails? A Produce with acks=0 expects no response and is left out.
SELECT client_id, api, count(*) AS requests,
       count(CASE WHEN response_size IS NULL THEN 1 END) AS unanswered,
       count(CASE WHEN CAST(errors AS STRING) <> '[]' THEN 1 END) AS with_errors,
       count(CASE WHEN response_size IS NULL OR CAST(errors AS STRING) <> '[]' THEN 1 END) / CAST(count(*) AS DOUBLE) AS failing
FROM exchanges
WHERE expected_response
GROUP BY client_id, api
ORDER BY failing DESC, requests DESC, api, client_id
