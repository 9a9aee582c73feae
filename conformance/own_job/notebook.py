"""One's own notebook, as Jupyter or a platform keeps it: its cells as texts that the driver runs in the names of a platform."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.core.errors import WrongUsage
from conformance.query.syntax import NotReadable, statements

NOTEBOOKS = (".ipynb", ".scala", ".r", ".R", ".dbc")
"""How the name of a notebook ends; one that ends in .py or .sql says in its first line that it is one."""
_COMMENT = {".py": "#", ".sql": "--"}
_LANGUAGES = {".py": "python", ".sql": "sql"}
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?(?:#|--) Databricks notebook source\s*$")
_MAGIC = re.compile(r"\s*%{1,2}(?P<name>[\w-]+)[ \t]*(?P<rest>.*)")
_IN_PYTHON = re.compile(r"(?P<indent>\s*)(?P<magic>!(?:\s*pip3?\b)?|%{1,2}[\w-]+|\?)|\s*[\w.]+\?+\s*$")
_TIME = re.compile(r"(\s*)%time\s+(\S.*)")
_PYTHON = ("python", "python3", "py", "pyspark", "ipython", "time", "timeit", "capture")
_SQL = ("sql", "sparksql")
_TEXT = ("md", "md-sandbox", "markdown", "html")
_SKIPPED = ("sh", "bash", "fs", "configure", "javascript", "js", "local", "writefile", "info", "help")
"""Magics of a whole cell which has no part in a query."""
_OTHER = {"scala": "Scala", "spark": "Scala", "r": "R", "sparkr": "R", "csharp": "C#", "kotlin": "Kotlin"}
"""What names another language → the language."""
_CELL_OF = (*_PYTHON, *_SQL, *_TEXT, *_SKIPPED, *_OTHER, "run")
_REMEDY = {
    "pip": "give its packages with --requirements FILE",
    "!pip": "give its packages with --requirements FILE",
    "conda": "give its packages with --requirements FILE",
    "additional_python_modules": "give them with --requirements FILE",
    "extra_jars": "give them with --jar FILE",
    "configure": "give the settings of Spark with --conf KEY=VALUE",
}
_RUN = re.compile(r"""(["'])(?P<quoted>[^"'\n]+)\1|(?P<path>\S+)""")
_GIVEN = re.compile(r"""\$(\w+)\s*=\s*["']?((?<=")[^"\n]*|(?<=')[^'\n]*|[^\s"']+)["']?""")
"""What Databricks passes on to the widgets of a notebook, ``$day="mon"``."""
_MOST_BYTES = 100_000_000


def is_notebook(text: str) -> bool:
    """Whether this names a notebook, by how the name ends or by the first line of the file."""
    path = Path(text)
    if path.suffix not in _COMMENT:
        return path.suffix in NOTEBOOKS
    try:
        with path.open("rb") as file:
            return _FIRST_LINE.match(file.readline(200)) is not None
    except OSError:
        return False


@dataclass(frozen=True)
class _Cell:
    number: int
    """The first cell of the file is 1; cells of text count."""
    line: int
    """The number of its first line: in the file, or of .ipynb in the cell, 1."""
    text: str
    language: str


@dataclass(frozen=True)
class Notebook:
    cells: Mapping[str, tuple[str, ...]]
    """Its own cells by the path of its file, then by the texts of their paths those that ``dbutils.notebook.run`` runs. The first line of
    a text is a comment: ``# job.ipynb, cell 3, line 1, Python``."""
    notes: tuple[str, ...]
    """Which magics are skipped, and what takes their place."""

    @classmethod
    def read(cls, file: Path, name: str) -> Notebook:
        """Read a notebook with those that it runs; ``name``: its path for messages. Raises WrongUsage, with cell and line."""
        reader = _Reader()
        cells = {name: tuple(reader.cells(file, name))}
        while unread := reader.children.keys() - cells.keys():
            for path in sorted(unread):
                cells[path] = tuple(reader.cells(*reader.children[path]))
        return cls(cells, tuple(dict.fromkeys(reader.notes)))


@dataclass
class _Reader:
    notes: list[str] = field(default_factory=list)
    children: dict[str, tuple[Path, str]] = field(default_factory=dict)
    """The text of a path in ``dbutils.notebook.run`` → the file, and its path for messages."""
    _runs: list[Path] = field(default_factory=list)

    def cells(self, file: Path, name: str) -> Iterator[str]:
        if file in self._runs:
            raise WrongUsage(f"{name}: it runs itself by %run, so it never ends")
        self._runs.append(file)
        for cell in _cells(file, name):
            yield from self._texts(cell, file, name)
        self._runs.pop()

    def _texts(self, cell: _Cell, file: Path, name: str) -> Iterator[str]:
        place = f"{name}, cell {cell.number}"
        lines = cell.text.split("\n")
        first = next((at for at, line in enumerate(lines) if line.strip() and "DBTITLE" not in line), 0)
        magic = _MAGIC.match(lines[first])
        called, language = magic["name"].lower() if magic else "", cell.language
        at = f"{place}, line {cell.line + first}"
        if magic and called in _CELL_OF:
            # What follows in the line of %sql or %time is a statement, in that of %%sql an option such as -o.
            of_line = called in _SQL or (called in _PYTHON and "%%" not in magic[0])
            lines[first] = magic["rest"] if of_line and not magic["rest"].startswith("-") else ""
            lines[:first] = [""] * first
            language = "python" if called in _PYTHON else "sql" if called in _SQL else called
        elif magic and language != "python":
            raise WrongUsage(f"{at}: %{magic['name']} is not known in a cell of {language}")
        if language == "run" and magic:
            yield from self._run(magic["rest"], file, name, at)
            language = "python"
        if language in _TEXT:
            return
        if language in _SKIPPED:
            self._skipped(at, language)
        elif language == "sql":
            yield from _of_sql("\n".join(lines), place, cell.line)
        elif language == "python":
            if text := self._python(lines, place, cell.line):
                self._find_children(text, file, name, at)
                yield _written(place, cell.line, "Python", text)
        else:
            other = _OTHER.get(language, language)
            remedy = "build a jar and name its class with --main" if other == "Scala" else "write it in Python or SQL"
            raise WrongUsage(f"{at}: a cell in {other} is not run: {remedy}")

    def _skipped(self, at: str, magic: str) -> None:
        remedy = f": {_REMEDY[magic]}" if magic in _REMEDY else ""
        self.notes.append(f"{at}: {'%' if magic[0].isalnum() else ''}{magic} is skipped{remedy}")

    def _run(self, rest: str, file: Path, name: str, at: str) -> Iterator[str]:
        named = _RUN.match(rest.strip())
        if named is None:
            raise WrongUsage(f"{at}: %run names no notebook: write its path behind it")
        path, more = named["quoted"] or named["path"], rest.strip()[named.end() :].strip()
        given, more = dict(_GIVEN.findall(more)), _GIVEN.sub("", more).strip()
        if given:
            yield f"# {at}, Python\ndbutils.widgets.give({given!r})"
        if more and not more.startswith("#"):
            raise WrongUsage(
                f"{at}: what follows %run {path} is not passed on: give it with --set NAME=VALUE, and omit it here"
            )
        yield from self.cells(*_child(path, file, name, f"{at}: %run {path}"))

    def _python(self, lines: Sequence[str], place: str, line: int) -> str:
        """The text of a cell without magics; empty if nothing is left of it."""
        text = "\n".join(lines)
        if not _parses(text):
            kept = list(lines)
            for at, written in enumerate(lines):
                if timed := _TIME.match(written):
                    kept[at] = timed[1] + timed[2]
                elif magic := _IN_PYTHON.match(written):
                    of_line, called = f"{place}, line {line + at}", (magic["magic"] or "?").lstrip("%")
                    if called == "run":
                        raise WrongUsage(f"{of_line}: %run stands beside other code: put it into a cell of its own")
                    self._skipped(of_line, called)
                    kept[at] = f"{magic['indent'] or ''}pass"
            text = "\n".join(kept)
        return text if text.strip() else ""

    def _find_children(self, text: str, file: Path, name: str, at: str) -> None:
        for path in _paths_run(text):
            if path not in self.children:
                self.children[path] = _child(path, file, name, f"{at}: notebook.run of {path}")


def _child(path: str, file: Path, name: str, what: str) -> tuple[Path, str]:
    """The file of a notebook that another one runs, and its path for messages. Raises WrongUsage if there is none."""
    for suffix in ("", *_COMMENT, ".ipynb"):
        child = (file.parent / f"{path}{suffix}").resolve()
        if child.is_file():
            return child, (Path(name).parent / f"{path}{suffix}").as_posix()
    raise WrongUsage(
        f"{what}: there is no such notebook beside {file.name}: put it there, and write its path as ./{Path(path).name}"
    )


def _paths_run(text: str) -> Iterator[str]:
    """Yield the paths that calls of ``notebook.run`` have as a text."""
    for call in ast.walk(ast.parse(text)) if _parses(text) else ():
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("notebook.run"):
            for path in (*call.args[:1], *(named.value for named in call.keywords if named.arg == "path")):
                if isinstance(path, ast.Constant) and isinstance(path.value, str):
                    yield path.value


def _written(place: str, line: int, kind: str, text: str) -> str:
    shown = text.lstrip("\n")
    return f"# {place}, line {line + len(text) - len(shown)}, {kind}\n{shown.rstrip()}"


def _of_sql(text: str, place: str, line: int) -> Iterator[str]:
    try:
        parts = statements(text)
    except NotReadable:
        raise WrongUsage(f"{place}: a text or a comment in its SQL has no end") from None
    for statement in parts:
        call = _of_widget(statement.words)
        yield _written(place, line + statement.line - 1, "Python" if call else "SQL", call or statement.text)


def _of_widget(words: Sequence[str]) -> str | None:
    """Return the call of ``dbutils`` that does what ``CREATE WIDGET TEXT day DEFAULT "mon"`` does; None of another statement."""
    match [word.upper() for word in words[:5]]:
        case ["REMOVE", "WIDGET", _]:
            return f"dbutils.widgets.remove({words[2]!r})"
        case ["CREATE", "WIDGET", _, _, "DEFAULT"] if len(words) > 5:
            return f"dbutils.widgets.text({words[3]!r}, {words[5]!r})"
        case _:
            return None


def _parses(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


def _cells(file: Path, name: str) -> Iterator[_Cell]:
    if file.suffix not in (*_COMMENT, ".ipynb"):
        remedy = (
            "build a jar and name its class with --main"
            if file.suffix == ".scala"
            else "export its source, or as .ipynb"
        )
        raise WrongUsage(f"{name} is not a notebook in Python or SQL: {remedy}")
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise WrongUsage(f"cannot read {name}: {error.strerror}") from None
    except ValueError:
        raise WrongUsage(f"{name}: it is not UTF-8") from None
    if len(content) > _MOST_BYTES:
        raise WrongUsage(f"{name} has more than {_MOST_BYTES:,} bytes")
    return _of_jupyter(text, name) if file.suffix == ".ipynb" else _of_source(text, file.suffix)


def _of_jupyter(text: str, name: str) -> Iterator[_Cell]:
    try:
        import nbformat
    except ImportError:
        raise WrongUsage(f"reading {name} needs nbformat: pip install 'watermark-conformance[notebooks]'") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of cells without an id, which older versions write
            json.loads(text)  # whose errors name the line
            notebook: Any = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
        cells = [(cell.cell_type, str(cell.source), cell.get("metadata", {})) for cell in notebook.cells]
        given = notebook.metadata
        of_platform = given.get("application/vnd.databricks.v1+notebook", {}).get("language")
        usual = of_platform or given.get("language_info", {}).get("name") or given.get("kernelspec", {}).get("language")
    except (ValueError, AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise WrongUsage(f"{name} is not a Jupyter notebook: {why}: save or export it again as .ipynb") from None
    for number, (kind, source, metadata) in enumerate(cells, 1):
        if kind == "code":
            own = metadata.get("microsoft", {}).get("language") if isinstance(metadata.get("microsoft"), dict) else None
            language = str(own or usual or "python").lower()
            yield _Cell(number, 1, source, "python" if language in _PYTHON else "sql" if language in _SQL else language)


def _of_source(text: str, suffix: str) -> Iterator[_Cell]:
    comment = _COMMENT[suffix]
    magic = re.compile(rf"{comment} MAGIC ?(.*)")
    lines = text.split("\n")
    if not _FIRST_LINE.match(lines[0].encode()):  # what a notebook runs need not be a notebook
        yield _Cell(1, 1, text, _LANGUAGES[suffix])
        return
    starts = [1, *(at for at, line in enumerate(lines, 1) if line.rstrip() == f"{comment} COMMAND ----------")]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines) + 1], strict=True), 1):
        cell = lines[start : end - 1]
        prefixed = [magic.match(line) for line in cell]
        of_magic = [found[1] for found in prefixed if found]
        named = _MAGIC.match(of_magic[0]) if of_magic else None
        if named and named["name"].lower() in _CELL_OF:
            # Its comments of another kind, such as a title, are none of the language of the cell.
            cell = [found[1] if found else "" for found in prefixed]
        else:
            cell = [found[1] if found else line for found, line in zip(prefixed, cell, strict=True)]
        yield _Cell(number, start + 1, "\n".join(cell), _LANGUAGES[suffix])
