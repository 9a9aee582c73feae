"""The ``container`` runtime: each target in its own container, from official or custom images."""
