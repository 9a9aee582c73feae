"""What all tests share: which files are none, and that no property is a matter of time."""

from hypothesis import settings

# The YAML below is material of tests, right and wrong on purpose: no case for pytest to collect.
collect_ignore_glob = ["*.yaml"]

# Speed is asserted in benchmarks/, as a ratio; a test that fails because the machine is busy says nothing.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
