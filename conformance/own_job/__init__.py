"""One's own function on two versions of Spark: its sample as micro-batches, both answers, the checkpoint handed over, one verdict."""
