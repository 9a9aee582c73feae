"""How many cases an accelerator ran operators of, by the plans that engines showed."""

from dataclasses import replace
from pathlib import Path

from conformance.core.observation import Observation
from reports.analysis.columns import beside_apache, native_uses, published_columns
from reports.results.published import published_results
from reports.results.reading import Results
from reports.results.records import Cell
from tests.support.observations import batch, observed, step
from tests.support.runs import written


def seen(*native: tuple[str, ...], state: bool) -> Observation:
    micro = batch(0, state=(1,) if state else ())
    steps = [step(number, micro).model_copy(update={"native": names}) for number, names in enumerate(native, 1)]
    return observed(*steps)


def test_a_case_counts_once_for_each_operator_that_ran_in_a_step(tmp_path: Path) -> None:
    run = Results.read(
        written(tmp_path / "run", targets=("spark-3.5.9",), cases=("late/a", "late/b", "late/c", "late/d"))
    )
    (target,) = run.header.targets
    assert [*native_uses(run)] == []
    showed = [
        seen((), ("CometProject", "CometExchange"), ("CometProject",), state=True),
        seen(("CometProject",), state=False),
        seen((), state=True),
        observed(),
    ]
    cells = tuple(
        Cell.model_validate({**cell.model_dump(), "observation": observation})
        for cell, observation in zip(run.cells, showed, strict=True)
    )
    header = run.header.model_copy(update={"targets": (target.model_copy(update={"accelerator": "comet 0.12.0"}),)})
    (use,) = native_uses(replace(run, header=header, cells=cells))
    assert (
        str(use)
        == "comet 0.12.0 ran operators of 2 of 3 cases, of 1 of the 2 with state: CometProject 2, CometExchange 1"
    )


def test_the_documentation_has_the_line_of_the_published_column() -> None:
    (column,) = (one for one in published_columns() if one.name.startswith("comet"))
    (use,) = column.native
    page = (Path(__file__).parents[4] / "docs" / "spark-developers.md").read_text(encoding="utf-8")
    assert f"{use}\n" in page
    release = published_results((column.target.spark,))
    found = beside_apache(column, release, {cell.case: cell.case_digest for cell in column.results.cells})
    assert found.different == ()
    assert f"All {found.compared} answers are those of Apache's Spark {column.target.spark}." in page
