"""What `import conformance` offers, and what it costs."""

import subprocess
import sys
from pathlib import Path

import pytest

import conformance

ROOT = Path(__file__).parents[3]
COST = """
import sys
import conformance
roots = ("conformance", "harness", "reports", "pydantic", "yaml")
print(sorted(name for name in sys.modules if name.partition(".")[0] in roots))
conformance.watermark_case
print("pydantic" in sys.modules)
"""


def test_every_public_name_exists_and_has_a_docstring():
    assert conformance.__all__ == sorted(conformance.__all__)
    for name in conformance.__all__:
        assert getattr(conformance, name).__doc__, name
    assert set(conformance.__all__) <= set(dir(conformance))


def test_no_other_name_exists():
    with pytest.raises(AttributeError, match="module 'conformance' has no attribute 'run_cases'"):
        _ = conformance.run_cases


def test_importing_it_costs_nothing():
    done = subprocess.run([sys.executable, "-c", COST], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['conformance']", "True"]


def test_it_says_that_it_is_typed():
    assert (ROOT / "conformance" / "py.typed").is_file()
