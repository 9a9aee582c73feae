"""The figures of coverage in the documentation are those of the suite, and every gap of Spark's tests has its reason."""

import re
from collections import Counter
from pathlib import Path

import pytest

from conformance.language.catalogue import Catalogue
from conformance.suite import discovery
from conformance.suite.coverage import Category, coverage
from tests.support.whole_suite import whole_suite

PAGE = Path(__file__).parents[4] / "docs" / "specification.md"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    found = whole_suite().catalogues[discovery.shipped()]
    assert isinstance(found, Catalogue)
    return found


@pytest.fixture(scope="module")
def spark_tests(catalogue: Catalogue) -> Category:
    return next(one for one in coverage(whole_suite().all_cases, catalogue) if one.in_part)


def test_the_page_tells_the_coverage_of_sparks_tests(spark_tests: Category) -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    told = re.search(
        r"Of the (\d+) tests .* carry (\d+) faithfully and (\d+) in part; (\d+) have no case\. "
        r"(\d+) of the (\d+) test an API of Scala.* (\d+) more are listed apart",
        text,
    )
    assert told is not None
    known = spark_tests
    counts = (known.entries, known.whole, known.lost, known.untested, known.counterparts, known.whole, known.apart)
    assert tuple(map(int, told.groups())) == tuple(map(len, counts))


def test_the_page_tells_what_is_listed_and_does_not_count(catalogue: Catalogue) -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    told = re.search(r"lists (\d+) tests: .* (\d+) of them test internals\. In (\d+) the .* For (\d+) of these", text)
    assert told is not None
    tests = (catalogue.spark_tests or {}).values()
    visible = Counter(test["visible"] for test in tests)
    like = [test["case"] for test in tests if "case" in test]
    assert tuple(map(int, told.groups())) == (len(tests), visible["INT"], visible["OTHER"], len(like))
    assert set(like) <= {case.id for case in whole_suite().cases}
    assert {test["visible"] for test in tests if "case" in test} == {"OTHER"}


def test_the_cases_carry_nearly_all_of_sparks_tests(spark_tests: Category) -> None:
    assert len(spark_tests.whole) >= 0.95 * len(spark_tests.entries)


def test_each_gap_has_its_reason(spark_tests: Category) -> None:
    assert {id for id in spark_tests.untested if id not in spark_tests.reasons} == set()
