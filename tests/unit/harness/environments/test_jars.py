"""Jars are fetched once, and checked each time."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from harness.environments import jars
from harness.environments.cache_directory import cache_dir
from harness.environments.jars import Jar, NoJar, fetch

CONTENT = b"classes"
JAR = Jar("org.example.tools:some-tool:1.2", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Maven Central has the jar."""
    monkeypatch.setattr(jars, "CENTRAL", (tmp_path / "central").as_uri())
    published = tmp_path / "central" / "org" / "example" / "tools" / "some-tool" / "1.2" / "some-tool-1.2.jar"
    published.parent.mkdir(parents=True)
    published.write_bytes(CONTENT)
    return published


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"CONFORMANCE_CACHE": str(tmp_path / "cache")}


def test_a_jar_is_downloaded_once(central: Path, environ: dict[str, str], tmp_path: Path) -> None:
    said: list[str] = []
    path = fetch(JAR, environ, on_progress=said.append)
    assert path == tmp_path / "cache" / "jars" / "some-tool-1.2.jar"
    assert path.read_bytes() == CONTENT
    central.unlink()
    assert fetch(JAR, environ, on_progress=said.append) == path
    assert said == ["downloading some-tool-1.2.jar"]


def test_a_damaged_jar_is_downloaded_again(central: Path, environ: dict[str, str]) -> None:
    path = fetch(JAR, environ)
    path.write_bytes(CONTENT[:-1])
    assert fetch(JAR, environ).read_bytes() == CONTENT


def test_another_file_is_refused(central: Path, environ: dict[str, str]) -> None:
    central.write_bytes(b"something else")
    with pytest.raises(NoJar, match=f"has the SHA-256 {hashlib.sha256(b'something else').hexdigest()}"):
        fetch(JAR, environ)
    assert not (cache_dir(environ) / "jars" / JAR.name).exists()


def test_without_a_connection_it_says_where_to_put_it(central: Path, environ: dict[str, str]) -> None:
    central.unlink()
    with pytest.raises(NoJar) as caught:
        fetch(JAR, environ)
    assert JAR.address in str(caught.value)
    assert f"put the file at {cache_dir(environ) / 'jars' / JAR.name}; it must have the SHA-256 {JAR.sha256}" in str(
        caught.value
    )
