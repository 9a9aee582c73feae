"""Results and cases in the formats of other programs, each a function to text."""
