"""Every page of the published report states the same value for one fact."""

import re
from collections import defaultdict

_COUNT = re.compile(r"([\d,]+)(?: [a-z]+)?")
_NONE = ("none", "no case", "–")


def value(text: str) -> str:
    """A count without its noun, and any other text without capitals and line breaks."""
    plain = " ".join(text.split()).lower()
    count = _COUNT.fullmatch(plain)
    return "0" if plain in _NONE else count[1] if count is not None else plain


def test_no_two_pages_state_different_values_of_one_fact(reader, published_folder):
    page = reader().page
    stated: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    marks = 0
    for path in sorted([*published_folder.rglob("*.html"), *published_folder.rglob("*.svg")]):
        if "data-fact=" not in path.read_text(encoding="utf-8"):
            continue
        page.goto(path.as_uri())
        found = page.locator("[data-fact]").evaluate_all("all => all.map(one => [one.dataset.fact, one.textContent])")
        marks += len(found)
        for name, text in found:
            stated[name][value(text)].add(str(path.relative_to(published_folder)))
    different = {name: values for name, values in stated.items() if len(values) > 1}
    told = "\n".join(
        f"{name}: " + "; ".join(f"{text!r} on {', '.join(sorted(pages)[:3])}" for text, pages in values.items())
        for name, values in different.items()
    )
    assert not different, told
    # A walk that finds few marks has missed pages: each pair of versions states at least ten facts.
    assert marks > 2000
    assert sum(len({p for pages in values.values() for p in pages}) > 1 for values in stated.values()) > 300
