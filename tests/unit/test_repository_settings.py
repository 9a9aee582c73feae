"""The files that GitHub, pre-commit and uv read: they parse, and they pin what they name."""

import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]-*.yml"))
ELEMENTS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def loaded(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_there_is_a_form_for_each_kind_of_issue():
    assert [loaded(form)["name"] for form in FORMS] == [
        "My Spark does something else",
        "A case is missing or wrong",
        "Bug in the tool",
    ]


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_a_form_is_one_that_github_accepts(form):
    spec = loaded(form)
    assert set(spec) <= {"name", "description", "title", "labels", "body"}
    assert spec["description"].endswith(".")
    ids = [element["id"] for element in spec["body"]]
    assert len(ids) == len(set(ids))
    for element in spec["body"]:
        assert element["type"] in ELEMENTS
        assert set(element) <= {"type", "id", "attributes", "validations"}
        assert element["attributes"]["label"]
        assert re.fullmatch(r"[a-z-]+", element["id"])
        options = element["attributes"].get("options", [])
        assert (element["type"] == "dropdown") == bool(options)
        assert all(isinstance(option, str) for option in options)
        assert len(options) == len(set(options))
    assert any(element.get("validations", {}).get("required") for element in spec["body"])


def test_the_form_about_a_spark_asks_for_what_reproduces_it():
    asked = {element["id"] for element in loaded(FORMS[0])["body"] if element.get("validations", {}).get("required")}
    assert asked == {"version", "vendor", "case", "expected", "seen"}


def test_issues_go_through_a_form():
    config = loaded(".github/ISSUE_TEMPLATE/config.yml")
    assert config["blank_issues_enabled"] is False
    assert all(urlsplit(link["url"]).scheme == "https" and link["about"] for link in config["contact_links"])


def test_every_hook_is_pinned():
    repositories = loaded(".pre-commit-config.yaml")["repos"]
    remote = [repository for repository in repositories if repository["repo"] != "local"]
    assert len(remote) >= 5
    for repository in remote:
        assert re.fullmatch(r"v\d+\.\d+\.\d+", repository["rev"]), repository["repo"]
    hooks = {hook["id"] for repository in repositories for hook in repository["hooks"]}
    assert hooks >= {"ruff-check", "ruff-format", "codespell", "actionlint", "zizmor", "end-of-file-fixer"}


def test_the_hook_validates_the_cases_that_changed():
    (local,) = [
        repository for repository in loaded(".pre-commit-config.yaml")["repos"] if repository["repo"] == "local"
    ]
    (hook,) = local["hooks"]
    assert hook["entry"] == "conformance validate"
    paths = [path.relative_to(ROOT).as_posix() for path in (ROOT / "cases").rglob("*.yaml")]
    checked = {path for path in paths if re.search(hook["files"], path)}
    assert {path for path in paths if path not in checked} == {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "cases").glob("*.yaml")
    }


def test_dependabot_watches_every_file_that_pins_something():
    updates = {update["package-ecosystem"]: update for update in loaded(".github/dependabot.yml")["updates"]}
    assert set(updates) == {"github-actions", "uv", "pre-commit"}
    for update in updates.values():
        assert update["schedule"] == {"interval": "weekly"}
        assert [group["patterns"] for group in update["groups"].values()] == [["*"]]


def test_the_lockfile_names_only_the_public_index():
    text = (ROOT / "uv.lock").read_text(encoding="utf-8")
    assert set(re.findall(r"\w+://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}
    packages = tomllib.loads(text)["package"]
    assert [package["name"] for package in packages if "editable" in package["source"]] == ["watermark-conformance"]
    assert {key for package in packages for key in package["source"]} == {"registry", "editable"}
