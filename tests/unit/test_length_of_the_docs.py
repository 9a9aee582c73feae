"""Each page of the documentation is read in five minutes: 1,200 words of its Markdown, code and tables included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MOST = 1_200
"""Words, as ``wc -w`` counts them: five minutes at 240 words a minute."""


def too_long(pages: Iterable[Path]) -> Mapping[str, int]:
    """Page → its words, of the pages that are longer."""
    words = {str(page): len(page.read_text(encoding="utf-8").split()) for page in pages}
    return {page: count for page, count in words.items() if count > MOST}


def test_every_page_is_read_in_five_minutes() -> None:
    assert len(PAGES) > 30
    assert too_long(PAGES) == {}, "divide each of these pages by what its readers want"


def test_a_longer_page_is_named(tmp_path: Path) -> None:
    short, long = tmp_path / "short.md", tmp_path / "long.md"
    short.write_text("word " * MOST)
    long.write_text("word " * (MOST + 1))
    assert too_long([short, long]) == {str(long): MOST + 1}
