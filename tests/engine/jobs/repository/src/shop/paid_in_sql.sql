WITH soon AS (
  SELECT o.order_id, o.ts, p.amount, p.method
  FROM orders o JOIN payments p
    ON o.order_id = p.order_id AND p.paid_at BETWEEN o.ts AND o.ts + INTERVAL 15 MINUTES
),
dear AS (SELECT * FROM soon WHERE amount > 1)
SELECT order_id, method, amount FROM dear
