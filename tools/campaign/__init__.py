"""A seeded campaign of attempts to get a green answer that is false, and of faults of the machine."""
