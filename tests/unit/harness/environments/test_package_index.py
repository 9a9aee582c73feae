"""What a user told pip, told to uv."""

import os
from pathlib import Path

import pytest

from harness.environments import installer


@pytest.fixture(autouse=True)
def _no_file_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    files = installer._files
    monkeypatch.setattr(
        installer,
        "_files",
        lambda environ: (path for path in files(environ) if "home" in path.parts or "chosen" in path.name),
    )


def _conf(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_variables_of_pip() -> None:
    told = installer.for_uv(
        {
            "PIP_INDEX_URL": "https://mirror.test/simple",
            "PIP_EXTRA_INDEX_URL": "https://a.test/simple\nhttps://b.test/simple",
            "PIP_TRUSTED_HOST": "mirror.test",
            "PIP_CERT": "/etc/ca.pem",
            "PIP_NO_INDEX": "0",
        }
    )
    assert told == {
        "UV_DEFAULT_INDEX": "https://mirror.test/simple",
        "UV_INDEX": "https://a.test/simple https://b.test/simple",
        "UV_INSECURE_HOST": "mirror.test",
        "SSL_CERT_FILE": "/etc/ca.pem",
    }


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_what_uv_was_told_stays(name: str) -> None:
    assert installer.for_uv({"PIP_INDEX_URL": "https://pip.test/simple", name: "https://uv.test/simple"}) == {}


def test_files_of_pip_the_weightier_over_the_lighter_and_variables_over_all(tmp_path: Path) -> None:
    home = tmp_path / "home"
    _conf(home / ".pip" / "pip.conf", "[global]\nindex-url = https://old.test\ncert = /ca.pem\n")
    _conf(home / ".config" / "pip" / "pip.conf", "[global]\nindex_url = https://new.test\n[install]\nno-index = true\n")
    environ = {"HOME": str(home)}
    assert installer.for_uv(environ) == {
        "UV_DEFAULT_INDEX": "https://new.test",
        "SSL_CERT_FILE": "/ca.pem",
        "UV_NO_INDEX": "1",
    }
    chosen = _conf(tmp_path / "chosen.conf", "[global]\nindex-url = https://chosen.test\n")
    assert installer.for_uv(environ | {"PIP_CONFIG_FILE": str(chosen)})["UV_DEFAULT_INDEX"] == "https://chosen.test"
    assert installer.for_uv(environ | {"PIP_CONFIG_FILE": os.devnull}) == {}
    assert installer.for_uv(environ | {"PIP_INDEX_URL": "https://said.test"})["UV_DEFAULT_INDEX"] == "https://said.test"


def test_a_folder_of_wheels_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    environ = {"PIP_FIND_LINKS": f"{tmp_path} /not/there https://wheels.test"}
    assert installer.for_uv(environ) == {"UV_FIND_LINKS": f"{tmp_path},https://wheels.test"}


def test_a_file_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    _conf(tmp_path / "home" / ".pip" / "pip.conf", "index-url without a section")
    assert installer.for_uv({"HOME": str(tmp_path / "home")}) == {}
