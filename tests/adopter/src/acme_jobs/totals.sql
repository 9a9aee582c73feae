SELECT window.start AS begins, who, sum(amount) AS total
FROM orders_with_loud_names
GROUP BY window(order_time, '10 minutes'), who
