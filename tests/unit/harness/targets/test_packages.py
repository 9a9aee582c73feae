"""What functions over pandas frames need is installed with every line that all machines can run."""

from harness.targets.targets import Targets


def test_pandas_and_pyarrow_with_every_line_that_machines_choose():
    for target in Targets.load().entries:
        has = {requirement.split(">")[0] for requirement in target.packages} >= {"pandas", "pyarrow"}
        assert has == (not target.by_name), target.name
