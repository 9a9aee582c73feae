WITH priced AS (
  SELECT ts, who, price * qty AS paid, customer.address.city AS city FROM orders WHERE discount < 50
),
per_window AS (
  SELECT window(ts, '10 minutes') AS span, city, sum(paid) AS paid, max(struct(paid, who)) AS best
  FROM priced GROUP BY window(ts, '10 minutes'), city
)
SELECT span.start AS start, city, paid, best.who AS who FROM per_window WHERE paid > 1
