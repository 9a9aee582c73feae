WITH p AS (SELECT paid_at, amount, method FROM payments)
SELECT window.end AS until,
       sum(amount) FILTER (WHERE method = 'cash') AS cash,
       sum(CASE WHEN method = 'card' THEN amount ELSE 0 END) AS card,
       count(*) AS n
FROM p GROUP BY window(paid_at, '10 minutes')
