"""The files that pre-commit and uv read pin what they name."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def loaded(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


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
    assert hook["entry"] == "conformance case validate"
    paths = [path.relative_to(ROOT).as_posix() for path in (ROOT / "cases").rglob("*.yaml")]
    checked = {path for path in paths if re.search(hook["files"], path)}
    assert {path for path in paths if path not in checked} == {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "cases").glob("*.yaml")
    }


def test_the_lockfile_names_only_the_public_index():
    text = (ROOT / "uv.lock").read_text(encoding="utf-8")
    assert set(re.findall(r"\w+://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}
    packages = tomllib.loads(text)["package"]
    assert [package["name"] for package in packages if "editable" in package["source"]] == ["watermark-conformance"]
    assert {key for package in packages for key in package["source"]} == {"registry", "editable"}


def test_the_image_of_the_tool_gets_all_that_the_wheel_is_made_of():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", "README.md", *wheel["packages"], *wheel["force-include"]}
    dockerfile = (ROOT / ".github" / "Dockerfile").read_text(encoding="utf-8")
    copied = [line.split()[1:-1] for line in dockerfile.splitlines() if re.match(r"COPY (?!--from)", line)]
    assert needed <= {source for sources in copied for source in sources}
    ignored = (ROOT / ".github" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert needed <= {line[1:] for line in ignored if line.startswith("!")}
