"""The YAML below is material of tests, right and wrong on purpose: no case for pytest to collect."""

collect_ignore_glob = ["*.yaml"]
