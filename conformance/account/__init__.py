"""The account of a micro-batch, and its text: what it read, what became of each row, what it kept and what it emitted."""
