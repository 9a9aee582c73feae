WITH seen AS (
  SELECT ts AS at, who, 'order' AS kind, cents AS what FROM orders
  UNION ALL
  SELECT click_time AS at, who, 'click' AS kind, order_id AS what FROM clicks
)
SELECT window(at, '15 minutes') AS span, kind, count(who) AS n, max(what) AS highest
FROM seen GROUP BY window(at, '15 minutes'), kind
