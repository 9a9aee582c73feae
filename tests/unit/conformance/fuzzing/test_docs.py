"""The page on drawn cases, followed to the letter."""

from pathlib import Path

from conformance.strategies import FAMILIES
from tests.support.effort import full_run_only
from tests.unit.reports.test_docs import Follower

PAGE = Path(__file__).parents[4] / "docs" / "fuzz.md"


@full_run_only
def test_the_page(tmp_path: Path) -> None:
    assert Follower(tmp_path).follow(PAGE) == 2
    assert not (tmp_path / "found").exists()


def test_the_page_names_every_family() -> None:
    assert [name for name in FAMILIES if f"`{name}`" not in PAGE.read_text()] == []
