"""Check a built site without a network: every link within it leads to a page and a place, and nothing is fetched from elsewhere.

    python -m tools.check_site site [/path/at/which/it/is/published/]

The page for addresses that are not there, 404.html, is shown at any address, so its links begin with that path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

_FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
_NOT_FETCHED = frozenset({"canonical", "alternate", "prev", "next"})
"""Relations of ``link`` that a browser does not follow by itself."""


@dataclass
class SitePage(HTMLParser):
    """The links and places of one page."""

    path: str
    """Relative to the site."""
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in _FETCHED and given.get("rel") not in _NOT_FETCHED and _FETCHED[tag] in given:
            self.fetched.append(given[_FETCHED[tag]])


def problems(site: Path, base: str = "/") -> Iterator[str]:
    """What is wrong with the site in a folder, a line each, by page. ``base``: the path at which it is published."""
    pages: dict[str, SitePage] = {}
    for path in sorted(site.rglob("*.html")):
        page = pages[path.relative_to(site).as_posix()] = SitePage(path.relative_to(site).as_posix())
        page.feed(path.read_text(encoding="utf-8"))
    if not pages:
        yield f"{site} has no pages"
    for page in pages.values():
        for target in page.fetched:
            if urlsplit(target).netloc:
                yield f"{page.path}: fetches {target}"
        for target in dict.fromkeys((*page.links, *page.fetched)):
            problem = _leads_nowhere(page, target, pages, site, base)
            if problem is not None:
                yield f"{page.path}: {problem}"


def _leads_nowhere(page: SitePage, target: str, pages: Mapping[str, SitePage], site: Path, base: str) -> str | None:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    path = unquote(urlsplit(urljoin(base + page.path, parts.path)).path).removeprefix(base) if parts.path else page.path
    if path == "" or path.endswith("/"):
        path += "index.html"
    if path not in pages:
        return None if (site / path).is_file() else f"{target} leads to no file"
    place = unquote(parts.fragment)
    # The report keeps the filters of its matrix in the fragment.
    known = not place or place == "top" or place.startswith("?") or place in pages[path].places
    return None if known else f"{target} leads to no place"


def main(arguments: Sequence[str]) -> int:
    """Print the problems; return the exit code, 0 if there are none."""
    wrong = list(problems(Path(arguments[0]), *arguments[1:2]))
    print(*(f"{problem}\n" for problem in wrong), sep="", end="", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
