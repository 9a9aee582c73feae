"""The pages of the site that are made: links, ids and what they are made of."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import conformance
from conformance.cli.commands import COMMANDS
from tests.support.published import published_specification

pytest.importorskip("mkdocs", reason="the extra `site` is not installed")

from tools import site_pages

ROOT = Path(__file__).parents[3]


class _Settings(yaml.SafeLoader):
    """Reads mkdocs.yml, whose slugs are made by a function."""


_Settings.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


@pytest.fixture(scope="module")
def settings():
    return yaml.load((ROOT / "tools" / "mkdocs.yml").read_text(encoding="utf-8"), _Settings)


@pytest.mark.parametrize(
    ("origin", "text", "expected"),
    [
        ("README.md", "[a](docs/ci.md#x)", "[a](ci.md#x)"),
        ("README.md", "![a](docs/matrix.svg)", "![a](matrix.svg)"),
        ("README.md", "[a](LICENSE)", f"[a]({site_pages.SOURCE}LICENSE)"),
        ("docs/ci.md", "[a](../cases/a.yaml)", f"[a]({site_pages.SOURCE}cases/a.yaml)"),
        ("docs/ci.md", "[a](../CONTRIBUTING.md)", "[a](contributing.md)"),
        ("docs/ci.md", "[a](gate-your-upgrade.md)", "[a](gate-your-upgrade.md)"),
        ("docs/ci.md", "[a](case-language/steps.md#x)", "[a](case-language/steps.md#x)"),
        ("docs/case-language/steps.md", "[a](../ci.md#x)", "[a](../ci.md#x)"),
        ("docs/case-language/steps.md", "[a](values.md)", "[a](values.md)"),
        ("docs/case-language/steps.md", "[a](../../CONTRIBUTING.md)", "[a](../contributing.md)"),
        ("docs/case-language/steps.md", "[a](../../cases/a.yaml)", f"[a]({site_pages.SOURCE}cases/a.yaml)"),
        ("docs/ci.md", "[a](#x) [b](https://x.y/z.md) [c](report:cases/a.html)", None),
        ("docs/ci.md", "`[a](../b)`\n\n```text\n[c](../d)\n```", None),
    ],
)
def test_links_of_the_repository_work_on_the_site(origin, text, expected):
    assert site_pages.links_on_the_site(text, origin) == (text if expected is None else expected)


def test_an_anchor_becomes_the_id_of_its_heading():
    assert site_pages.with_ids('<a id="3.1"></a>\n\n## 3.1 late\n\nText') == "## 3.1 late {#3.1}\n\nText"


def test_every_name_of_the_public_interface_has_its_part():
    assert {name.rpartition(".")[2] for name in site_pages.PUBLIC} | {"Case"} == set(conformance.__all__)


def test_the_help_of_every_command_is_there():
    page = site_pages.commands_page()
    for name in COMMANDS:
        assert f"## conformance {name}\n" in page
        assert f"Usage: conformance {name}" in page


def pages_of(entry):
    """The pages of an entry of the navigation and of its parts, at any depth."""
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from pages_of(part)


def test_every_page_of_the_documentation_stands_in_the_navigation(settings):
    listed = {*pages_of(settings["nav"])}
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert written <= listed
    assert listed - written == {
        "index.md",
        "questions.md",
        "contributing.md",
        "commands.md",
        "python-api.md",
        "changelog.md",
    }


def test_the_chapters_are_put_into_the_navigation(settings):
    class Config:
        nav = settings["nav"]

    found = site_pages.on_config(Config()).nav
    (chapters,) = (part["Specification"] for part in found[-1]["Reference"] if "Specification" in part)
    assert chapters[0] == "specification/index.md"
    assert chapters[-1] == "specification/appendix.md"
    assert len(chapters) == len(published_specification().chapters) + 2


def page(uri):
    return SimpleNamespace(file=SimpleNamespace(dest_uri=uri))


@pytest.mark.parametrize(("uri", "folder"), [("questions.html", "report/"), ("specification/a.html", "../report/")])
def test_links_to_the_report_are_seen_from_the_page(uri, folder):
    shown = site_pages.on_page_content('<a href="report:cases/a/b.html">', page=page(uri), config=None, files=None)
    assert shown == f'<a href="{folder}cases/a/b.html">'


def test_no_table_has_an_empty_head():
    empty = "<table><thead>\n<tr>\n<th></th>\n<th></th>\n</tr>\n</thead><tbody></tbody></table>"
    assert (
        site_pages.on_page_content(empty, page=page("a.html"), config=None, files=None)
        == "<table><tbody></tbody></table>"
    )
    half = "<thead><tr><th></th><th>A</th></tr></thead>"
    assert "<td></td><th>A</th>" in site_pages.on_page_content(half, page=page("a.html"), config=None, files=None)
