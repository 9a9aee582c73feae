"""A target that needs nothing installed."""

from packaging.specifiers import SpecifierSet

from conformance.core.versions import SparkVersion
from harness.targets.targets import JavaRequirement, Target

SPARK_359 = Target(SparkVersion(3, 5, 9), SpecifierSet(">=3.8"), JavaRequirement(majors=(17,)))
