"""The standard: the case language, what is expected of each Spark version, and the verdict."""
