"""Each page of the documentation is read in five minutes: 1,200 words of its Markdown, code and tables included."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 1_200
"""Words, as ``wc -w`` counts them: five minutes at 240 words a minute."""
TO_BE_DIVIDED = frozenset({"design.md", "case-language.md"})


def too_long(folder: Path) -> Mapping[str, int]:
    """Page → its words, of the pages that are longer."""
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in sorted(folder.glob("*.md"))}
    return {name: count for name, count in words.items() if count > MOST and name not in TO_BE_DIVIDED}


def test_every_page_is_read_in_five_minutes() -> None:
    assert dict(too_long(ROOT / "docs")) == {}, "divide each of these pages by what its readers want"


def test_a_longer_page_is_named(tmp_path: Path) -> None:
    (tmp_path / "short.md").write_text("word " * MOST)
    (tmp_path / "long.md").write_text("word " * (MOST + 1))
    assert too_long(tmp_path) == {"long.md": MOST + 1}
