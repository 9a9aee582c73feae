"""Results in the formats that CI systems read, each a function from results to text."""
