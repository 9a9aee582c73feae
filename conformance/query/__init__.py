"""One typed reading of a query, made from its pipeline and SQL or from an engine's plan."""
