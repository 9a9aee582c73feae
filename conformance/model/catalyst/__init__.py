"""What imitates Spark's optimizer (Catalyst) and the formats of its state; the rest of the model asks ``spark_plan`` alone."""
