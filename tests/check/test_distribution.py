"""What is released: the wheel and the source distribution, built as a release builds them."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ADDRESS = "https://github.com/watermark-conformance/watermark-conformance"
PART = (
    "tests/check/test_layout.py",
    "tests/unit/conformance/language/test_reading.py",
    "tests/unit/test_links_of_the_docs.py",
)
"""Tests that need the packages, the documentation and the files of the repository; `test_the_sources_are_complete` has the rest."""


def call(*command: str | Path, folder: Path = ROOT, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)], cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both, the wheel made of the source distribution; uv makes the environments for it faster than pip."""
    folder = tmp_path_factory.mktemp("dist")
    done = call(sys.executable, "-m", "build", "--installer", "uv", "--outdir", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def sources(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sources")
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return unpacked


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(path).decode())


def test_an_index_accepts_them(dist: Path) -> None:
    done = call(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())
    assert (done.returncode, done.stdout.count("PASSED")) == (0, 2), done.stdout + done.stderr


def test_the_wheel_is_small(wheel: Path) -> None:
    assert (
        wheel.stat().st_size <= 4_050_000
    )  # the answers of all releases and pairs of lines, of Comet and of Sail are half of it
    with zipfile.ZipFile(wheel) as archive:
        assert sum(one.file_size for one in archive.infolist()) <= 10_000_000


def test_what_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {PurePosixPath(name).parts[0] for name in names} == {
        "conformance",
        "harness",
        "reports",
        f"watermark_conformance-{PROJECT['version']}.dist-info",
    }
    assert {
        "conformance/py.typed",
        "conformance/cases/schema.json",
        "conformance/cases/late-drops/window-still-open.yaml",
        "reports/baselines/lines.jsonl.xz",
        "reports/baselines/pairs.xz",
        "reports/baselines/query-needs.xz",
        "harness/driver/jobs/__init__.py",
        "reports/exports/templates/script.txt",
    } <= names


def test_the_page_of_the_index(metadata: Message) -> None:
    """Nothing on it is relative, and what it shows is of this release."""
    page = metadata.get_payload()
    assert isinstance(page, str)
    assert metadata["Description-Content-Type"] == "text/markdown"
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page, flags=re.DOTALL))
    assert len(links) > 8
    assert [link for link in links if not link.startswith("https://")] == []
    ours = [link for link in links if "watermark-conformance/watermark-conformance" in link]
    assert all(f"/v{PROJECT['version']}/" in link for link in ours)
    for link in ours:
        assert (ROOT / link.partition(f"/v{PROJECT['version']}/")[2].partition("#")[0]).exists(), link
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", page)
    assert pictures
    assert all(picture.startswith("https://raw.githubusercontent.com/") for picture in pictures)


def test_its_addresses(metadata: Message) -> None:
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues", "Source"}
    assert all(url.startswith(ADDRESS) for url in urls.values())


def test_nobody_installs_what_few_need(metadata: Message) -> None:
    needed = [text for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text]
    names = {re.split(r"[^\w-]", text)[0] for text in needed}
    assert names.isdisjoint(
        {"docker", "testcontainers", "requests", "hypothesis", "fsspec", "pyarrow", "pyspark", "uv"}
    )


def test_the_sources_are_complete(sources: Path) -> None:
    """All files that git tracks; git itself leaves out what it ignores, and pip needs PKG-INFO."""
    if not (ROOT / ".git").exists():
        pytest.skip("only a checkout knows which files it tracks")
    tracked = {*call("git", "ls-files").stdout.splitlines()}
    packed = {str(path.relative_to(sources)) for path in sources.rglob("*") if path.is_file()}
    assert len(tracked) > 1_500
    assert tracked - packed == set()


def test_tests_pass_from_the_sources(sources: Path) -> None:
    done = call(
        *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *PART),
        folder=sources,
        PYTHONPATH=str(sources),
        PYTEST_ADDOPTS="",
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_the_changes_make_a_changelog(tmp_path: Path) -> None:
    draft = call(sys.executable, "-m", "towncrier", "build", "--draft", "--version", "99.0.0", "--date", "2030-01-02")
    assert draft.returncode == 0, draft.stderr
    assert draft.stdout.lstrip().startswith("## [99.0.0] - 2030-01-02")
    left = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    wrong = [
        name for name in left if not re.fullmatch(r"(\d+|\+[\w-]+)(\.\d+)?\.(added|changed|fixed|removed)\.md", name)
    ]
    assert wrong == []
