"""Finding the pyspark beside the command without importing it."""

import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.targets import installed
from harness.targets.installed import NoPyspark, UnusablePyspark
from harness.targets.targets import Targets


def _package(folder: Path, version: str, *, jars: bool = True) -> Path:
    package = folder / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')\n")
    (package / "version.py").write_text(f"{version}\n")
    if jars:
        (package / "jars").mkdir()
        (package / "bin").mkdir()
    return package


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('__version__ = "3.5.0-amzn-1"', "3.5.0-amzn-1"),
        ('__version__: str = "4.0.0.dev1"', "4.0.0.dev1"),
    ],
)
def test_whoever_built_it(line: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = _package(tmp_path, line)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = installed.find({})
    assert (found.version, found.package, found.home) == (version, package, package)
    assert "pyspark" not in sys.modules


def test_in_a_zip_below_spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As vendors put it on PYTHONPATH."""
    for folder in ("jars", "bin", "python/lib"):
        (tmp_path / "spark" / folder).mkdir(parents=True)
    archive = tmp_path / "spark" / "python" / "lib" / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("pyspark/__init__.py", "")
        zipped.writestr("pyspark/version.py", '__version__: str = "3.5.0-amzn-1"\n')
    monkeypatch.syspath_prepend(str(archive))
    found = installed.find({"SPARK_HOME": str(tmp_path / "another")})
    assert (found.version, found.home) == ("3.5.0-amzn-1", tmp_path / "spark")


def test_without_jars_it_belongs_to_the_spark_home_that_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path / "site", '__version__ = "3.5.0"', jars=False)
    for folder in ("jars", "bin"):
        (tmp_path / "opt" / folder).mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert installed.find({"SPARK_HOME": str(tmp_path / "opt")}).home == tmp_path / "opt"


def test_the_client_of_spark_connect_is_not_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = _package(tmp_path, '__version__ = "4.0.0"', jars=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UnusablePyspark, match=rf"The pyspark in {package} .*without jars"):
        installed.find({})


def test_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda _: None)
    with pytest.raises(NoPyspark, match=r'pip install "watermark-conformance\[spark\]"') as caught:
        installed.find({})
    assert caught.value.exit_code == 3


def _unpacked(home: Path, version: str) -> None:
    _package(home / "python", f'__version__ = "{version}"', jars=False)
    for folder in ("jars", "bin", "python/lib"):
        (home / folder).mkdir(parents=True)
    (home / "python" / "lib" / "py4j-0.10.9.7-src.zip").touch()


def test_an_unpacked_spark_is_the_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if another can be imported; this process stays as it is."""
    _package(tmp_path / "site", '__version__ = "4.0.0"')
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    _unpacked(tmp_path / "ours", "3.5.0-ours-7")
    before = list(sys.path)
    target = replace(Targets.load(), spark_home=tmp_path / "ours").installed()
    found = target.installed
    assert found is not None
    assert (found.version, found.home) == ("3.5.0-ours-7", tmp_path / "ours")
    python, py4j = found.python_path
    assert python == tmp_path / "ours" / "python"
    assert py4j.name == "py4j-0.10.9.7-src.zip"
    assert sys.path == before


@pytest.mark.parametrize("lacking", ["bin", "jars", "python/pyspark", "python/lib"])
def test_a_folder_that_is_not_a_spark_names_the_missing_part(lacking: str, tmp_path: Path) -> None:
    _unpacked(tmp_path, "3.5.0")
    shutil.rmtree(tmp_path / lacking)
    with pytest.raises(HarnessError, match=f"{tmp_path} is not an unpacked Spark: {lacking}.* is missing"):
        installed.unpacked(tmp_path)
