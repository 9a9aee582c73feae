"""What state functions over pandas frames need is installed where such functions exist, and nowhere else."""

from harness.targets.targets import Targets


def test_pandas_and_pyarrow_from_the_version_that_can_use_them():
    for target in Targets.load().entries:
        has = {requirement.split(">")[0] for requirement in target.packages} >= {"pandas", "pyarrow"}
        assert has == ((target.version.major, target.version.minor) >= (3, 4)), target.name
