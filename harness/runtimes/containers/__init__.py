"""The ``container`` runtime: each target in a container of its own, from official images or one's own."""
