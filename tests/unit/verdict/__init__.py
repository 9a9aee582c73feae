"""Expectations, verdicts and what they say, on observations made by hand."""
