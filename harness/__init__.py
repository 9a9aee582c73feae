"""How a case is run: targets, their environments, runtimes and the scheduler. Never judges a result."""
