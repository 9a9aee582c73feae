"""A target that needs nothing installed, and cases that miniature engines answer."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from packaging.specifiers import SpecifierSet

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.suite import discovery
from harness.targets.targets import JavaRequirement, Target

CASES = Path(__file__).parent / "cases"
SPARK_359 = Target(SparkVersion(3, 5, 9), SpecifierSet(">=3.8"), JavaRequirement(majors=(17,)))


@cache
def _case() -> Case:
    (case,) = discovery.load([CASES]).cases
    return case


def cases_named(names: Iterable[object]) -> list[Case]:
    """The case of windows, under each of these names."""
    return [_case().model_copy(update={"id": f"late-drops/{name}"}) for name in names]
