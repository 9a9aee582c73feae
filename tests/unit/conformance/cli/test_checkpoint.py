"""``conformance checkpoint inspect`` as it is called, on checkpoints that real Sparks wrote, and as its page says."""

import json
import os
import re
from pathlib import Path

import fsspec
import pytest

from conformance.core.versions import releases
from tests.support.checkpoints import DATA, releases_with, small, written_by
from tests.support.commands import answer_of

PAGE = Path(__file__).parents[4] / "docs" / "your-checkpoint.md"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return answer_of(capsys, "checkpoint", "inspect", *arguments)


def test_there_is_a_checkpoint_of_every_line() -> None:
    lines = {version.line for version in releases()}
    assert {path.stem.rpartition(".")[0] for path in DATA.glob("*.zip")} == lines


@pytest.mark.parametrize(
    "name", ["window_aggregation-hdfs", "outer_join-hdfs", "outer_join-rocksdb", "deduplication-hdfs"]
)
def test_what_each_line_wrote(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = releases_with(name)
    assert len(found) >= (10 if name.endswith("hdfs") else 8)
    for version in found:
        _, out, _ = run(capsys, str(written_by(version, name, tmp_path / version)), "--json")
        shown = json.loads(out)
        assert version.rpartition(".")[0] in shown["lines"], version
        assert not shown["unfinished"]
        assert shown["watermarkMs"] == (1704110940000 if "join" in name else 1704111660000), version
        assert {one["kind"] for one in shown["sources"]} == {"files"}
        stores = [store for operator in shown["operators"] for store in operator["stores"]]
        assert {store["provider"] for store in stores} == {"RocksDB" if "rocksdb" in name else "HDFS"}
        assert {store["partitions"] for store in stores} == {2}
        assert all(store["schemas"] for store in stores) is (version[:3] not in ("2.4", "3.0")), version


def test_a_query_without_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version in releases_with("filter_only-hdfs"):
        code, out, _ = run(capsys, str(written_by(version, "filter_only-hdfs", tmp_path / version)), "--to", "4.3")
        assert (code, "state           none" in out, "no known reason to refuse it" in out) == (0, True, True)


def test_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written_by("3.5.9", "outer_join-rocksdb", tmp_path)

    def files() -> dict[Path, tuple[bytes, int]]:
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}

    before = files()
    run(capsys, str(folder), "--to", "4.3")
    assert files() == before


def test_an_object_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = fsspec.filesystem("memory")
    store.put(str(small(tmp_path / "local")), "/bucket/orders", recursive=True)
    code, out, _ = run(capsys, "memory://bucket/orders")
    assert (code, out.splitlines()[0]) == (0, "memory://bucket/orders")
    assert run(capsys, "memory://bucket/none")[::2] == (2, "conformance: memory://bucket/none: nothing is there\n")


def test_an_unknown_store_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "nowhere://x")
    assert (code, err.count("\n"), "nowhere://x: ValueError: Protocol not known: nowhere" in err) == (2, 1, True)


OFFSETS = "v1\n%s\n%s"
SCHEMA = "state__0__0___metadata__schema"
OPERATOR = "state__0___metadata__metadata__0"
HOSTILE = "\x1b]0;x\x07\n::error::y"
FILES: dict[str, tuple[str, str | bytes, str]] = {
    "deep metadata": ("metadata", '{"id":' + "[" * 200_000, "metadata: this is not the metadata of a query"),
    "an id without end": ("metadata", '{"id":"' + "x" * 2_000 + '"}', "metadata: this is not the metadata of a query"),
    "a long number": ("offsets__0", OFFSETS % (f'{{"batchWatermarkMs":{"9" * 4000}}}', "-"), "batchWatermarkMs is not"),
    "more than Java's numbers": ("commits__0", f'v1\n{{"nextBatchWatermarkMs":{1 << 63}}}', "is not a number of milli"),
    "sources without end": ("offsets__0", "v1\n{}\n" + "-\n" * 20_000, "offsets/0: it has more than 10,000 lines"),
    "many schemas": (SCHEMA, b"\0\2v3\x7f\xff\xff\xff", "schema: this is not a state schema"),
    "a schema cut off": (SCHEMA, b"\0\2v2\0\0\0\1\0\x10abc", "schema: this is not a state schema"),
    "a hostile format": (SCHEMA, b"\0\x0av9\n::error", "schema: the format of this state schema is"),
    "a deep operator": (OPERATOR, "v1\n" + "[" * 100_000, "not the metadata of a stateful operator"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_spark_never_wrote_is_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, content, why = FILES[name]
    small(tmp_path, **{path: content})
    code, out, err = run(capsys, str(tmp_path))
    assert (code, out, err.count("\n"), why in err) == (2, "", 1, True), err


@pytest.mark.parametrize("part", ["metadata", "offsets/0", "commits/0"])
@pytest.mark.parametrize("kind", ["link out", "endless link", "pipe", "sparse file"])
def test_what_is_no_file_of_a_checkpoint_is_not_read(
    part: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link shows another file of this machine, or has no end; a pipe waits for ever."""
    path = small(tmp_path / "c") / part
    secret = tmp_path / "secret"
    secret.write_text('v1\n{"id":"hunter2","conf":{"a":"hunter2"}}\nhunter2')
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse file":
        path.touch()
        os.truncate(path, 5 << 30)
    else:
        path.symlink_to(secret if kind == "link out" else "/dev/zero")
    code, out, err = run(capsys, str(tmp_path / "c"))
    why = {"pipe": "this is not a file", "sparse file": "more than 64 MiB"}.get(kind, "a link, which is not followed")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert f"{part}: this" in err
    assert why in err


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small(tmp_path / "other")
    small(tmp_path / "c")
    (tmp_path / "c" / "state").symlink_to(tmp_path / "other")
    code, _, err = run(capsys, str(tmp_path / "c"))
    assert (code, "state: this is a link, which is not followed" in err) == (2, True)


def test_a_deep_offset_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small(tmp_path, offsets__0=OFFSETS % ("{}", "[" * 200_000))
    code, out, _ = run(capsys, str(tmp_path))
    assert (code, "0: unknown, [[[" in " ".join(out.split())) == (0, True)


def test_names_settings_and_columns_cannot_act_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = json.dumps({"conf": {HOSTILE: HOSTILE, "\ud800": "\udfff"}})
    state = f"state__0__0__{HOSTILE}__1.delta"
    small(tmp_path, offsets__0=OFFSETS % (metadata, HOSTILE), **{state: "x"})
    for option in ([], ["--json"], ["--to", "4.3"]):
        code, out, err = run(capsys, str(tmp_path), *option)
        assert (code, err) == (0, ""), option
        assert [char for char in out if char in "\x1b\x07\ud800"] == [], option
        assert [line for line in out.splitlines() if line.lstrip().startswith("::")] == [], option


def test_the_credentials_in_a_url_are_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url in ("nowhere://user:hunter2@bucket/x", "memory://user:hunter2@bucket/none"):
        code, out, err = run(capsys, url)
        assert (code, "hunter2" in out + err) == (2, False), err


def test_the_page_shows_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written_by("3.5.9", "outer_join-hdfs", tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = re.findall(
        r"```console\n\$ conformance checkpoint inspect ([^\n]*)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    assert shown
    for arguments, output in shown:
        code, out, _ = run(capsys, *arguments.split())
        assert (code, _without_age(out)) == (1, _without_age(output))


def _without_age(text: str) -> str:
    return re.sub(r", (\d+ \w+|less than a minute) ago", "", text)
