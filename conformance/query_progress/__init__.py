"""A streaming query explained by what it left behind: its progress, without its code and without Spark."""
