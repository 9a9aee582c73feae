"""Every link and picture of the documentation leads to a file that is there, and to a heading of it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / ".github").glob("*.md"), *(ROOT / "docs").rglob("*.md")))
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")


def links(text: str) -> list[tuple[str, str]]:
    """The path and the fragment of each link within the repository; code is skipped."""
    return LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL))


def anchors(page: Path) -> set[str]:
    """The fragments that GitHub and GitLab give to the headings of a page."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_they_lead_somewhere() -> None:
    assert len(PAGES) > 50
    for page in PAGES:
        for path, fragment in links(page.read_text(encoding="utf-8")):
            to = page.parent / path if path else page
            assert to.exists(), f"{page.name}: {path}"
            assert not fragment or fragment in anchors(to), f"{page.name}: {path}#{fragment}"


def test_a_link_that_leads_nowhere_would_be_seen() -> None:
    text = "[a](docs/report-pages.md#the-matrix) ![b](gone.png) [c](https://x.y/z) `[d](e)`"
    assert links(text) == [("docs/report-pages.md", "the-matrix"), ("gone.png", "")]
    assert "the-matrix" in anchors(ROOT / "docs" / "report-pages.md")
    assert not (ROOT / "gone.png").exists()


def test_the_report_is_shown_and_the_command_that_draws_it_is_there() -> None:
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    assert ("report.png", "") in links(page)
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    module, picture = re.search(r"`python -m (tests\.browser\.\w+) (\S+)`", contributing).groups()  # type: ignore[union-attr]
    assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")
