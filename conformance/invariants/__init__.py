"""Invariants: what holds of a stream under a watermark, whatever its rows are, as SQL over the tables of a soak."""
