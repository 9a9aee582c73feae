"""What is copied into a container, and what comes back."""

import io
import tarfile

import pytest

from harness.runtimes.containers.runtime import Volume, _Stream, packed


def members(archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: (member.isdir(), oct(member.mode)) for member in tar}


def test_an_engines_directory_is_for_any_user(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a.py").write_text("x = 1")
    packed_ = packed("spark-3.5.9-1", [("code", tmp_path, [tmp_path / "pkg" / "a.py"])])
    assert members(packed_) == {
        "spark-3.5.9-1": (True, "0o777"),
        "spark-3.5.9-1/code": (True, "0o777"),
        "spark-3.5.9-1/code/pkg": (True, "0o777"),
        "spark-3.5.9-1/code/pkg/a.py": (False, "0o644"),
    }


def test_chunks_are_read_as_a_file():
    stream = _Stream([b"ab", b"", b"cde", b"f"])
    assert stream.read(1) == b"a"
    assert stream.read(3) == b"bcd"
    assert stream.read() == b"ef"
    assert stream.read(5) == b""


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_links_pipes_and_devices_that_code_of_a_case_made_do_not_come_back(tmp_path, kind):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        made = tarfile.TarInfo("./made")
        made.type, made.linkname = kind, "/etc/passwd"
        tar.addfile(made)
        file = tarfile.TarInfo("./folder/file")
        file.size = 2
        tar.addfile(file, io.BytesIO(b"ok"))

    class Container:
        def get_archive(self, path):
            return iter([content.getvalue()]), {}

    Volume.fetch(None, Container(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert (tmp_path / "folder" / "file").read_text() == "ok"
