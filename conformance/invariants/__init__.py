"""Invariants: what holds of every stream under a watermark, as SQL over the tables of a soak."""
