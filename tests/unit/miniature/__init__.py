"""A very small engine of our own, right or wrong on purpose: the suite is tested on it before it tests Spark."""
