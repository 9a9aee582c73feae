"""How a user names a function of a file."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from conformance.cli.job_options import SampleOptions
from conformance.core.errors import WrongUsage
from conformance.own_job.named_job import JobQueries, NamedJob, kind_of
from conformance.runner.resources import EngineUse
from tests.support.miniature.two_versions import OLD


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / "orders.py").write_text("def revenue(spark, orders):\n    return orders\n")
    (tmp_path / "orders.csv").write_text("t,n\n2026-03-01 12:00:00,1\n")
    return folder


def asked(text: str, jobs: Path) -> JobQueries:
    files = SampleOptions([f"orders={jobs.parent}/orders.csv"]).files(EngineUse(), allow_silent=False)
    with ExitStack() as stack:
        return NamedJob(text, kind_of(text)).queries(OLD, EngineUse(), files, stack, lambda _: print)


def test_a_function_of_a_file_is_that_of_its_module(jobs: Path) -> None:
    found = asked(f"{jobs}/orders.py:revenue", jobs)
    assert [query.called for query, _ in found.queries] == ["orders:revenue"]
    assert found.where.runtime.own_code is not None
    assert found.where.runtime.own_code.folders == (jobs.resolve(),)


def test_a_file_of_a_package_is_imported_as_part_of_it(jobs: Path) -> None:
    (jobs / "__init__.py").touch()
    found = asked(f"{jobs}/orders.py:revenue", jobs)
    assert [query.called for query, _ in found.queries] == ["jobs.orders:revenue"]
    assert found.where.runtime.own_code is not None
    assert found.where.runtime.own_code.folders == (jobs.parent.resolve(),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("order.py:revenue", "there is no file .*/order.py"),
        ("orders.py:revenu", "unknown function 'revenu': did you mean 'revenue'"),
        ("orders.py:", "'orders:' is not a function"),
    ],
)
def test_what_is_not_there_is_named(jobs: Path, text: str, says: str) -> None:
    with pytest.raises(WrongUsage, match=says):
        asked(f"{jobs}/{text}", jobs)
