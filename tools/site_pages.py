"""The pages of the site that are made rather than written; MkDocs calls this module (``hooks`` of ``tools/mkdocs.yml``).

The README is the first page. Links of a page to a file that is no page lead to the file in the repository. Links to the report, which
is put into the finished site, begin with ``report:`` until a page is rendered, because MkDocs does not know its files.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation
from mkdocs.structure.pages import Page

from reports.html.addresses import InAFolder, case_key
from reports.html.pages import FRONT, TABS
from reports.html.search import entries
from reports.html.specification_pages import APPENDIX, INDEX, SpecificationPages, pages_of_report
from tools import site_report
from tools.site_questions import llms_text, questions, questions_markdown

ROOT = Path(__file__).parents[1]
SOURCE = "https://github.com/watermark-conformance/watermark-conformance/blob/main/"
REPORT = "report"
CHAPTERS = "specification"
MOVED = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files at the root of the repository → their pages."""
PUBLIC = (
    "conformance.own_job.case_run.run_case",
    "conformance.own_job.case_run.CaseResult",
    "conformance.own_job.case_run.NotAsExpected",
    "conformance.own_job.watermark_case.watermark_case",
    "conformance.own_job.watermark_case.WatermarkCase",
    "conformance.query_progress.answer.explain_progress",
)
_CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_ANCHOR = re.compile(r'<a id="([^"]+)"></a>\n\n(#+ .*)$', re.MULTILINE)
_SEARCH = 'data-md-component="search" role="dialog" aria-label="Search"'
_PART = re.compile(r'aria-labelledby="__nav_(\w+)_label"')
_NO_HEAD = re.compile(r"<thead>\s*<tr>\s*(?:<th[^>]*></th>\s*)+</tr>\s*</thead>")
_IN_LIST = re.compile(r"^( {2,3})```.*?^\1```$", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the chapters into the navigation."""
    chapters = (f"{chapter.name}.md" for chapter in site_report.specification().chapters)
    names = [f"{CHAPTERS}/{name}" for name in (INDEX, *chapters, APPENDIX)]
    for entry in config.nav or ():
        for part in entry.get("Reference", ()):
            if isinstance(part, dict) and "Specification" in part:
                part["Specification"] = names
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for name, content in made_pages().items():
        files.append(File.generated(config, name, content=content))
    return files


def on_nav(nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:  # noqa: ARG001
    """The report and its playground are the last entries of the first part."""
    nav.items[0].children += [
        Link("The report", f"{REPORT}/index.html"),
        Link("Playground", f"{REPORT}/playground.html"),
    ]
    return nav


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links of a written page as they are on the site, and code in lists where Python-Markdown expects it."""
    if page.file.abs_src_path is not None and "/docs/" in page.file.abs_src_path:
        markdown = links_on_the_site(markdown, f"docs/{page.file.src_uri}")
    return _IN_LIST.sub(lambda block: re.sub(r"^ {2,3}", "    ", block[0], flags=re.MULTILINE), markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links to the report, as seen from the page, and no table with an empty head."""
    html = _NO_HEAD.sub("", html).replace("<th></th>", "<td></td>")
    report = posixpath.relpath(REPORT, posixpath.dirname(page.file.dest_uri) or ".")
    return html.replace(f'href="{REPORT}:', f'href="{report}/')


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Names that the theme leaves out: of its search, and of the parts of its navigation."""
    named = output.replace('data-md-component="search" role="dialog"', _SEARCH)
    return _PART.sub(lambda found: f'aria-label="Part {found[1].replace("_", ".")}"', named)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Write what programs read, and let the search find what is in the report, also where the site is opened as files."""
    found = questions(site_report.report(), site_report.specification())
    text = llms_text(found, site_report.specification(), config.site_url or ".")
    (Path(config.site_dir) / "llms.txt").write_text(text, encoding="utf-8")
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["docs"] += found_in_the_report()
    path.write_text(json.dumps(index), encoding="utf-8")
    # A page that is opened as a file may load a script, but no JSON.
    path.with_suffix(".js").write_text(f"var __index = {json.dumps(index)}", encoding="utf-8")


def found_in_the_report() -> list[dict[str, str | list[str]]]:
    """The pages, bugs and cases of the report, as entries of the index of the search; error classes are the tags of a case."""

    def href(kind: str, name: str = "") -> str:
        page, place = (case_key(name), "") if kind == "case" else (kind, name)
        return f"{REPORT}/{InAFolder().page(page, FRONT, place)}"

    found = entries(site_report.report(), TABS, href)
    # A page stands before the places on it, of which the search makes one result with it.
    return [
        {
            "location": one.href,
            "title": f"{one.title} ({one.text})" if kind == "Known bugs" else one.title,
            "text": " ".join((one.text, one.words, one.errors.replace("|", " "))),
            "tags": [error.upper() for error in one.errors.split("|") if "_" in error and " " not in error],
        }
        for kind in ("Pages", "Known bugs", "Cases")
        for one in found[kind]
    ]


def made_pages() -> Mapping[str, str]:
    """Name → Markdown."""
    address = _in_the_report
    pages = SpecificationPages(site_report.report(), site_report.specification(), address).markdown()
    found = questions(site_report.report(), site_report.specification())
    moved = {page: links_on_the_site((ROOT / file).read_text(encoding="utf-8"), file) for file, page in MOVED.items()}
    return {
        **moved,
        **{f"{CHAPTERS}/{name}": with_ids(content) for name, content in pages.items()},
        "questions.md": with_ids(
            questions_markdown(site_report.report(), found, site_report.specification(), address, CHAPTERS)
        ),
        "commands.md": commands_page(),
        "python-api.md": python_page(),
    }


def links_on_the_site(markdown: str, origin: str) -> str:
    """A page of the repository with links that work on the site.

    ``origin``: its path. The page of a file in ``docs`` is where it is below it, others are at the top of the site.
    """

    folder = posixpath.dirname(origin.removeprefix("docs/")) or "."

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), found[1]))
        on_site = path.removeprefix("docs/") if path.startswith("docs/") else MOVED.get(path)
        address = SOURCE + path if on_site is None else posixpath.relpath(on_site, folder)
        return f"]({address}{found[2] or ''})"

    return "".join(part if _CODE.fullmatch(part) else _LINK.sub(link, part) for part in _CODE.split(markdown))


def with_ids(markdown: str) -> str:
    """Anchors before headings as ids of the headings, so that the link beside a heading is the address to cite."""
    return _ANCHOR.sub(r"\2 {#\1}", markdown)


def commands_page() -> str:
    from typer.testing import CliRunner

    from conformance.cli.commands import COMMANDS
    from conformance.cli.main import app

    runner = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})

    def help_of(*names: str) -> str:
        output = runner.invoke(app, [*names, "--help"], prog_name="conformance").output
        return "\n".join(line.rstrip() for line in output.strip("\n").splitlines())

    parts = ["# Commands\n\nWhat `conformance COMMAND --help` prints.\n"]
    for name in COMMANDS:
        parts.append(f"## conformance {name}\n\n```text\n{help_of(*name.split())}\n```\n")
    return "\n".join(parts)


def python_page() -> str:
    """The public interface, from its docstrings."""
    lead = "What `conformance` exports. All else may change in any release: [what stays stable](stability.md)."
    return f"# Python interface\n\n{lead}\n\n" + "\n".join(f"::: {name}\n" for name in PUBLIC)


def _in_the_report(case: str) -> str | None:
    address: Callable[[str], Any] = pages_of_report("")
    return f"{REPORT}:{str(address(case)).lstrip('/')}" if case in site_report.report().matrix.cases else None
