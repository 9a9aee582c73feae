"""The pages: every link leads somewhere, nothing is fetched, text is text, and the same results give the same bytes."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from conformance.cli.main import main
from conformance.core.observation import ErrorSeen
from conformance.core.output_file import CannotWriteFile, OutputFile
from conformance.suite import discovery
from conformance.suite.coverage import Apart, Category
from conformance.suite.discovery import Suite
from reports.analysis import divided_work
from reports.analysis.report import Report
from reports.html.writer import write, write_one_file
from reports.results.reading import Results
from tests.support import cells as a
from tests.support import effort
from tests.support.commands import exit_code_of
from tests.support.observations import batch, step
from tests.support.pages import whole_page
from tests.support.runs import written

SAMPLE = Path(__file__).parents[3] / "browser" / "sample"
OPTIONAL = {"li", "dt", "dd", "tr", "th", "td", "thead", "tbody", "option"}
"""Elements that need not be closed."""
VOID = {"meta", "link", "br", "input", "rect", "line", "path", "circle", "!doctype"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"' {{ 7*7 }} \u202eevil\u202c \x1b[0m"


class Page(HTMLParser):
    """The tags of a page, what they link to, and whether each that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        self.tags.append(tag)
        self.handlers += [
            name for name, value in attrs if name.startswith("on") or (value or "").startswith("javascript:")
        ]
        if said.get("id"):
            self.ids.append(str(said["id"]))
        if tag == "a":
            self.links.append(str(said.get("href")))
        elif said.get("href") or said.get("src"):
            self.fetched.append(str(said.get("href") or said.get("src")))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open[-1] in OPTIONAL and tag not in OPTIONAL:
            self._open.pop()
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag


UPGRADES = "upgrades"
"""The folder of pages to print, which need no other file."""


def sample() -> Report:
    return Report.of(Results.read(SAMPLE / "results.jsonl"), discovery.load([SAMPLE / "cases"]))


def digests(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def pages(folder: Path) -> Iterator[tuple[Path, Page]]:
    for file in sorted(folder.rglob("*.html")):
        yield file, Page(whole_page(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(sample(), tmp_path_factory.mktemp("site")).parent


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_one_file(sample(), tmp_path_factory.mktemp("one"))


def test_every_link_leads_to_a_page_and_a_place(folder: Path) -> None:
    found = {file.resolve(): page for file, page in pages(folder)}
    assert len(found) == 10 + 3 + 3 + 11
    for file, page in found.items():
        assert len(page.ids) == len(set(page.ids)), file
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert parts.scheme in ("http", "https"), link
                continue
            to = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if to.suffix in (".svg", ".yaml"):
                assert to.is_file(), f"{file.name}: {link}"
                continue
            assert to in found, f"{file.name}: {link}"
            if parts.fragment and not parts.fragment.startswith("?"):
                assert unquote(parts.fragment) in found[to].ids, f"{file.name}: {link}"


def test_every_link_within_one_file_leads_to_a_place(one_file: Path) -> None:
    page = Page(one_file.read_text(encoding="utf-8"))
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        if link.startswith("#") and "?" not in link:
            assert unquote(link[1:]) in page.ids, link
        else:
            assert link.startswith(("https://", "http://", "#matrix?")), link
    assert page.fetched == ["data:,"]


def test_nothing_is_fetched_from_elsewhere(folder: Path) -> None:
    for file, page in pages(folder):
        shared = [] if file.parent == folder else ["shared.js"]
        loaded = [] if file.parent.name == UPGRADES else ["report.css", "report.js", *shared]
        assert sorted({Path(one).name for one in page.fetched}) == ["data:,", *loaded], file
    style = (folder / "report.css").read_text()
    loaded = {"search-index.js", "minisearch.js", "search.js"}
    assert {file.name for file in folder.glob("*.js")} == {"report.js", *loaded}
    assert all(f'"{name}"' in (folder / "report.js").read_text() for name in loaded)
    assert "url(" not in style
    assert "@import" not in style


def test_the_same_results_give_the_same_bytes(tmp_path: Path, folder: Path, one_file: Path) -> None:
    assert digests(write(sample(), tmp_path / "again").parent) == digests(folder)
    assert write_one_file(sample(), tmp_path / "one").read_bytes() == one_file.read_bytes()


@pytest.mark.parametrize("writer", [write, write_one_file])
class TestHostileText:
    def texts(self, folder: Path) -> Iterator[str]:
        return (whole_page(file) for file in folder.rglob("*.html"))

    def check(self, folder: Path, scripts: int) -> None:
        for file in folder.rglob("*.html"):
            text = whole_page(file)
            page = Page(text)
            # The index of the search lies in the one file as data.
            data = text.count("<script type=application/json")
            shared = sum(source.endswith("shared.js") for source in page.fetched)
            assert page.tags.count("script") - data - shared == (0 if file.parent.name == UPGRADES else scripts)
            assert "img" not in page.tags
            assert page.handlers == []
            assert "\u202e" not in text
            assert "\x1b" not in text

    def test_in_results(self, tmp_path: Path, writer) -> None:  # type: ignore[no-untyped-def]
        row = (a.FIRST[0], a.FIRST[1], HOSTILE)
        error = ErrorSeen(stage="run", classes=(HOSTILE,), message=HOSTILE)
        answers = {
            "f/rows": a.seen(step(1, batch(0, row))),
            "f/error": a.seen(step(1, error=error)),
            "../../etc/passwd": a.CALM,
            f"f/{''.join(filter(str.isprintable, HOSTILE))}": a.CALM,
        }
        results = a.results(tmp_path / "r", {id: {"3.5.9": answer, "4.3.0": a.CALM} for id, answer in answers.items()})
        cells = tuple(cell.model_copy(update={"notes": (HOSTILE,)}) for cell in results.cells)
        target = results.header.targets[0].model_copy(update={"java": HOSTILE, "os": HOSTILE, "image": HOSTILE})
        header = results.header.model_copy(update={"targets": (target, results.header.targets[1]), "command": HOSTILE})
        out = tmp_path / "deep" / "site"
        writer(Report.of(Results(header, cells, results.footer), Suite(())), out)
        self.check(out, 1)
        assert {path.name for path in tmp_path.iterdir()} == {"r", "deep"}
        assert {path.name for path in (tmp_path / "deep").iterdir()} == {"site"}
        assert "&lt;script&gt;alert(1)" in "".join(self.texts(out))
        assert "⟨right-to-left override⟩" in "".join(self.texts(out))

    def test_in_a_case(self, tmp_path: Path, writer) -> None:  # type: ignore[no-untyped-def]
        cases = tmp_path / "cases" / "f"
        cases.mkdir(parents=True)
        text = json.dumps(HOSTILE)
        condition = json.dumps("count = '{}'".format(HOSTILE.replace("'", "\\'")))
        (cases / "a.yaml").write_text(
            f"title: {text}\nwhy: {json.dumps(HOSTILE + ' [x](javascript:alert(3)) ![i](https://example.com/i.png)')}\n"
            "streams: {events: 'event_time TIMESTAMP, count INT'}\nlinks: [https://example.com/]\n"
            f"query: [from: events, where: {condition}]\nconf: {{spark.x: {text}}}\n"
            f"steps: [{{name: {text}, add: {{events: [['12:00', 1]]}}}}]\n"
        )
        loaded = discovery.load([tmp_path / "cases"])
        assert loaded.problems == ()
        (case,) = loaded.cases
        results = a.results(tmp_path / "r", {case.id: {"3.5.9": a.CALM, "4.3.0": a.LOST}})
        cells = tuple(cell.model_copy(update={"case_digest": case.digest}) for cell in results.cells)
        out = tmp_path / "site"
        writer(Report.of(Results(results.header, cells, results.footer), loaded), out)
        self.check(out, 1)
        for text in self.texts(out):
            assert "javascript:" not in "".join(Page(text).links)
            assert "{{ 7*7 }}" in text or "49" not in text

    def test_a_row_of_ten_thousand_characters(self, tmp_path: Path, writer) -> None:  # type: ignore[no-untyped-def]
        long = a.seen(step(1, batch(0, (a.FIRST[0], a.FIRST[1], "x" * 10_000))))
        results = a.results(tmp_path / "r", {"f/a": {"3.5.9": long, "4.3.0": a.CALM}})
        cells = tuple(cell.model_copy(update={"notes": ("y" * 10_000,)}) for cell in results.cells)
        writer(Report.of(Results(results.header, cells, results.footer), Suite(())), tmp_path / "site")
        self.check(tmp_path / "site", 1)
        assert "characters)" in "".join(self.texts(tmp_path / "site"))


class TestWithoutTheCases:
    def test_what_was_seen_is_shown(self, tmp_path: Path) -> None:
        results = a.results(tmp_path / "r", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.CALM}})
        write(Report.of(results, Suite(())), tmp_path / "site")
        text = whole_page(tmp_path / "site" / "cases" / "f" / "a.html")
        assert "The file of this case was not found" in text
        assert "Differs from 4.3.0" in text
        steps = text.split("Step by step")[1:]
        assert len(steps) == 2
        assert all("<th>Engine<" in step and "Expected" not in step for step in steps)
        assert "12:10, 12:20, 2" in steps[0]
        assert "12:10, 12:20, 2" not in steps[1]

    def test_times_are_short_and_in_full_where_one_points(self, tmp_path: Path) -> None:
        write(Report.of(a.results(tmp_path / "r", {"f/a": {"4.3.0": a.CALM}}), Suite(())), tmp_path / "site")
        text = whole_page(tmp_path / "site" / "cases" / "f" / "a.html")
        full = "1970-01-01T12:00:00.000000Z, 1970-01-01T12:10:00.000000Z, 1"
        assert f'<span title="{full}">12:00, 12:10, 1</span>' in text
        assert '<span title="1970-01-01T00:00:00Z">00:00</span>' in text

    def test_a_case_that_changed_is_not_held_against_what_another_showed(self, tmp_path: Path) -> None:
        loaded = discovery.load([SAMPLE / "cases"])
        id = loaded.cases[0].id
        write(Report.of(a.results(tmp_path / "r", {id: {"4.3.0": a.CALM}}), loaded), tmp_path / "site")
        text = whole_page(tmp_path / "site" / "cases" / f"{id}.html")
        assert "This case has changed since it ran" in text
        assert f"<h1>{escape(loaded.cases[0].title)}</h1>" in text
        assert "<h2>Why</h2>" not in text

    def test_no_version_at_all(self, tmp_path: Path) -> None:
        results = a.results(tmp_path / "r", {"f/a": {}})
        write(Report.of(results, Suite(())), tmp_path / "site")
        assert "1 case</span> on 0 Spark versions." in (tmp_path / "site" / "index.html").read_text()

    def test_a_case_in_no_folder(self, tmp_path: Path) -> None:
        write(
            Report.of(a.results(tmp_path / "r", {"a": {"3.5.9": a.CALM, "4.3.0": a.CALM}}), Suite(())),
            tmp_path / "site",
        )
        assert (tmp_path / "site" / "cases" / "a.html").is_file()
        assert "no change" in (tmp_path / "site" / "index.html").read_text()


class TestCommand:
    def test_it_says_what_to_open(self, tmp_path, monkeypatch, capsys) -> None:
        monkeypatch.chdir(tmp_path)
        written(tmp_path / "results.jsonl")
        assert exit_code_of("report", "results.jsonl") == 0
        assert capsys.readouterr().out == "site/index.html\n"
        assert exit_code_of("report", "results.jsonl", "--output", "one", "--single-file") == 0
        assert Path("one/report.html").is_file()

    def test_shards_are_put_together(self, tmp_path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        for version in ("3.5.9", "4.3.0"):
            written(tmp_path / version, targets=(f"spark-{version}",))
        assert exit_code_of("report", "3.5.9", "4.3.0") == 0
        assert Path("site/compare/3.5.9..4.3.0.html").is_file()

    def test_what_is_wrong_with_a_file_is_told_and_nothing_written(self, tmp_path, monkeypatch, capsys) -> None:
        monkeypatch.chdir(tmp_path)
        path = written(tmp_path / "results.jsonl")
        path.write_text(re.sub(r'"format":\d+', '"format":99', path.read_text(), count=1))
        assert exit_code_of("report", "results.jsonl") == 3
        assert "upgrade watermark-conformance" in capsys.readouterr().err
        assert not Path("site").exists()


def test_tests_of_spark_that_are_carried_in_part_do_not_count(tmp_path: Path) -> None:
    covered = Category(
        name="Spark's own tests",
        entries={"T001": "S: a", "T002": "S: b", "T003": "S: c"},
        cases={"T001": ("x",), "T002": ("y",)},
        reasons={"T003": "it needs Scala"},
        lost={"T002": ("the metrics",)},
        apart=(Apart("T004", "S: d", "it runs a batch query", ("y",)),),
        in_part=True,
    )
    report = replace(
        Report.of(a.results(tmp_path / "r", {"f/a": {"4.3.0": a.CALM}}), Suite(())),
        covered=(Category(name="behaviours", entries={}, cases={}), covered),
    )
    write(report, tmp_path / "site")
    about, behaviours = ((tmp_path / "site" / f"{name}.html").read_text() for name in ("about", "behaviours"))
    for page in (about, behaviours):
        assert re.search("<b><span[^>]*>1</span></b> of 3 Spark&.{2,5};s own tests, faithfully", page)
        assert "1 more in part, 1 not at all." in page
    assert "<code>T002</code> S: b <span class=quiet>Not tested: the metrics</span>" in behaviours
    assert "<code>T003</code> S: c <span class=quiet>it needs Scala</span>" in behaviours
    assert "<code>T004</code> S: d <span class=quiet>it runs a batch query</span>" in behaviours


class TestAFullDisk:
    """Every file of a site is written before the first takes its place."""

    @pytest.fixture
    def full(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
        monkeypatch.setattr(divided_work, "_processors", lambda: 1)
        write_text = OutputFile.write

        def at(number: int) -> None:
            writes = count(1)

            def write(self: OutputFile, text: str) -> None:
                if next(writes) == number:
                    raise CannotWriteFile(self.path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
                write_text(self, text)

            monkeypatch.setattr(OutputFile, "write", write)

        return at

    def test_the_old_site_stays_whichever_file_cannot_be_written(
        self, folder: Path, full: Callable[[int], None], tmp_path: Path
    ) -> None:
        for name in digests(folder):
            (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
            # A picture must begin as one; reasons stay anyway.
            content = (folder / name).read_text()
            (tmp_path / "site" / name).write_text(content if name.endswith(".yaml") else f"{content}<!-- old -->")
        (tmp_path / "site" / "notes.txt").write_text("mine")
        before, whole = digests(tmp_path / "site"), sample()
        files = len(before) - 1
        for number in effort.sample(range(1, files + 1), 4):
            full(number)
            with pytest.raises(CannotWriteFile, match="No space left on device") as caught:
                write(whole, tmp_path / "site")
            assert caught.value.exit_code == 3
            assert digests(tmp_path / "site") == before
            assert [path.name for path in (tmp_path / "site").glob(".*")] == []
        full(files + 1)
        write(whole, tmp_path / "site")
        assert (tmp_path / "site" / "notes.txt").read_text() == "mine"
        (tmp_path / "site" / "notes.txt").unlink()
        assert digests(tmp_path / "site") == digests(folder)

    def test_no_new_folder_is_left(self, full: Callable[[int], None], tmp_path: Path) -> None:
        full(5)
        with pytest.raises(CannotWriteFile):
            write(sample(), tmp_path / "new")
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("file", "file is a file: give --output a folder, new or not"),
        ("link", "link is a file"),
        ("file/below", "cannot write .*below: Not a directory"),
        ("n" * 300, "cannot write n+: File name too long"),
        ("loop", "cannot write loop: "),
        ("pipe", "pipe is a file"),
    ],
)
@pytest.mark.parametrize(
    "command",
    ["report r", "report r --single-file", "report r --from 3.5.9 --to 4.3.0", "maintain specification r"],
)
def test_what_is_no_folder_is_named(
    command: str,
    out: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "r")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "-o", out])
    assert (ended.value.code, (tmp_path / "file").read_text()) == (2, "mine")
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(f"conformance: {told}", line), line
    assert sorted(tmp_path.iterdir()) == before


def test_a_link_stays_a_link_and_reasons_stay(folder: Path, tmp_path: Path) -> None:
    site, front = tmp_path / "site", tmp_path / "elsewhere.html"
    shutil.copytree(folder, site)
    (site / "index.html").rename(front)
    (site / "index.html").symlink_to(front)
    (tmp_path / "new").symlink_to("target")
    accepted = next((site / UPGRADES).glob("*.yaml"))
    accepted.write_text("accepted:\n  - case: late/a\n    because: we looked at it\n")
    reasons = accepted.read_text()
    write(sample(), site)
    assert (site / "index.html").is_symlink()
    assert front.read_bytes() == (folder / "index.html").read_bytes()
    assert accepted.read_text() == reasons
    write(sample(), tmp_path / "new")
    assert digests(tmp_path / "target") == digests(folder)
