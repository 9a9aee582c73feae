"""Finds and reads the cases in files and folders.

The id of a case is its path without the suffix under the root of its suite: the nearest folder above it that contains
``behaviours.yaml``, else the nearest one named ``cases``, else the given folder. The cases of a folder with
``behaviours.yaml`` must name behaviours, and only ids that are in its catalogues.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from conformance.core.case import Case
from conformance.core.data import text_digest
from conformance.core.errors import WrongUsage
from conformance.core.wording import unknown
from conformance.language import InvalidCase, Problem, read_any
from conformance.language.catalogue import FILES, Catalogue, files_of
from conformance.language.source import MAX_BYTES
from conformance.policies.case import PolicyCase

SUFFIXES = (".yaml", ".yml")
"""Of files of cases. A file whose name ends so in other letters, ``.YAML``, is a problem: it is left out."""
ID = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
"""Ids are used as paths in containers and as test names, so they contain nothing that needs quoting."""


@dataclass(frozen=True)
class Suite:
    """The valid cases that were found, and the problems of the others."""

    cases: tuple[Case, ...]
    """The Spark cases, by id."""
    problems: tuple[Problem, ...] = ()
    catalogues: Mapping[Path, Catalogue] = field(default_factory=dict)
    """Root → its catalogues, if any."""
    invalid: int = 0
    """How many files are not valid cases."""
    policy_cases: tuple[PolicyCase, ...] = ()
    """The policy cases, by id; their target is ``conformance.policies``, not an engine."""

    @property
    def all_cases(self) -> tuple[Case | PolicyCase, ...]:
        return tuple(sorted((*self.cases, *self.policy_cases), key=lambda case: case.id))

    @property
    def digest(self) -> str:
        """The digest of the ids and digests of the Spark cases, which identifies the suite in results."""
        content = sorted((case.id, case.digest) for case in self.cases)
        return text_digest(json.dumps(content))

    def without_permission(self) -> Suite:
        """The same, where all that needs ``--allow-code`` is a problem."""
        problems = {
            Problem(case.path, needed.line, needed.column, f"{needed.reason}: only --allow-code runs this")
            for case in self.cases
            for needed in case.needs_code
        }
        refused = {case.id for case in self.cases if case.needs_code}
        return replace(
            self,
            cases=tuple(case for case in self.cases if case.id not in refused),
            problems=tuple(sorted({*self.problems, *problems})),
            invalid=self.invalid + len({problem.path for problem in problems}),
        )

    def raise_for_problems(self) -> None:
        """Raise `InvalidCase` with every problem, if there is one."""
        if self.problems:
            raise InvalidCase(self.problems)


def shipped() -> Path:
    """The folder of the built-in suite: inside the installed package, or next to the package in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "cases"
    return installed if installed.is_dir() else package.parent / "cases"


def load(paths: Iterable[Path] | None = None) -> Suite:
    """Read the cases in files and folders, by default the suite's. Paths without cases and ids that two files share are problems."""
    return _read(paths)


def valid(paths: Iterable[Path] | None = None) -> Suite:
    """The same, of files without any problem; raises InvalidCase."""
    loaded = load(paths)
    loaded.raise_for_problems()
    return loaded


def some(ids: Iterable[str], paths: Iterable[Path] | None = None, *, key: str | None = None) -> tuple[Case, ...]:
    """The Spark cases with these ids, and with this ``key`` in their file if one is given; no other file is read.

    Raises InvalidCase: what a case that cannot be read documents would be missed in silence.
    """
    wanted = frozenset(ids)
    loaded = _read(paths, _Wanted(wanted, key))
    loaded.raise_for_problems()
    return tuple(case for case in loaded.cases if case.id in wanted)


def find(name: str) -> Case | PolicyCase:
    """The only case in a file, or the suite's with this id; raises InvalidCase, and WrongUsage if there is none, or several."""
    path = Path(name)
    if not path.exists():
        wanted = name.removeprefix("cases/").removesuffix(SUFFIXES[0])
        path = shipped() / f"{wanted}{SUFFIXES[0]}"
        if not path.is_file() and expansion_at(path) is None:
            raise WrongUsage(f"{name!r} is neither a case of the suite nor a file.{_hint(wanted)}")
    loaded = valid([path])
    if len(loaded.all_cases) != 1:
        raise WrongUsage(f"{name} contains {len(loaded.all_cases)} cases; name one of them")
    return loaded.all_cases[0]


def root_of(file: Path) -> Path | None:
    """The root of the suite that contains the file (an absolute path), if one of the folders above it identifies itself as a root."""
    suite = next((folder for folder in file.parents if (folder / FILES["behaviours"]).is_file()), None)
    return suite or next((folder for folder in file.parents if folder.name == "cases"), None)


def is_catalogue(file: Path, root: Path) -> bool:
    """Whether a file is a catalogue of the suite at ``root``, not a case."""
    return file.parent == root and file.name in FILES.values() and (root / FILES["behaviours"]).is_file()


def id_of(file: Path, root: Path) -> str:
    """The id of the case in a file below ``root``: ``late-drops/window-still-open``."""
    return file.relative_to(root).with_suffix("").as_posix()


def expansion_at(path: Path) -> tuple[Path, str] | None:
    """For ``x.left-outer.yaml``, which does not exist: the existing file ``x.yaml`` and ``left-outer``, a case of its matrix."""
    parts = path.stem.split(".")
    for at in range(1, len(parts)):
        file = path.with_name(".".join(parts[:at]) + path.suffix)
        if file.is_file():
            return file, ".".join(parts[at:])
    return None


def _read(paths: Iterable[Path] | None, wanted: _Wanted | None = None) -> Suite:
    reader = _Reader(wanted)
    for path in tuple(paths or ()) or (shipped(),):
        reader.read(path)
    return reader.suite()


class _Wanted:
    """Which files may hold cases that somebody asks for."""

    def __init__(self, ids: frozenset[str], key: str | None) -> None:
        self._files = files_of(ids)
        self._key = key.encode() if key is not None else None

    def may_be_in(self, file: Path, id: str, catalogue: Catalogue | None) -> bool:
        if id not in self._files:
            return False
        if self._key is None:
            return True
        if self._key == b"upgrades" and catalogue is not None and catalogue.names_upgrades_in(id):
            return True
        try:
            with file.open("rb") as opened:
                text = opened.read(MAX_BYTES)
        except OSError:
            return True
        # YAML may spell a key with escapes.
        return self._key in text or b"\\" in text


def _hint(wanted: str) -> str:
    """Suggest the ids of the suite's cases, and the names of its families, that are most like a text."""
    ids = [id_of(file, shipped()) for file in _files(shipped(), []) if not is_catalogue(file, shipped())]
    near = get_close_matches(wanted, [*ids, *{id.partition("/")[0]: None for id in ids}], 3, cutoff=0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def _in_the_suite(path: Path) -> str:
    """Name the suite's own file or folder for a path such as ``cases/late-drops`` outside of a checkout, or for the id of a case."""
    name = path.relative_to("cases") if path.parts[:1] == ("cases",) else path
    near = () if path.is_absolute() else (shipped() / name, shipped() / f"{name}{SUFFIXES[0]}")
    found = (f"; the suite's own is {place}" for place in near if ".." not in name.parts and place.exists())
    return next(found, f".{hint}" if (hint := _hint(name.as_posix().removesuffix(SUFFIXES[0]))) else "")


class _Reader:
    def __init__(self, wanted: _Wanted | None = None) -> None:
        self._wanted = wanted
        self._cases: dict[str, Case | PolicyCase] = {}
        self._problems: list[Problem] = []
        self._catalogues: dict[Path, Catalogue | None] = {}
        self._roots: dict[Path, Path | None] = {}
        """The root of the suite that contains the files of a folder."""
        self._seen: set[Path] = set()
        self._invalid: set[Path] = set()

    def read(self, path: Path) -> None:
        if not path.exists():
            if (of_matrix := expansion_at(path.absolute())) is None:
                self._problems.append(Problem(path, 0, 0, f"no such file or folder{_in_the_suite(path)}"))
            elif (file := of_matrix[0]) not in self._seen:
                self._cases_in(file, self._root(file, file.parent), of_matrix[1])
            return
        top = path.absolute() if path.is_dir() else path.absolute().parent
        files = list(_files(path.absolute(), self._problems))
        cases = [file for file in files if not is_catalogue(file, self._root(file, top))]
        if not cases:
            self._problems.append(Problem(path, 0, 0, f"no cases: a case is a file ending in {SUFFIXES[0]}"))
        for file in (file for file in cases if file not in self._seen):
            root = self._root(file, top)
            if self._wanted is None or self._wanted.may_be_in(file, id_of(file, root), self._catalogue(root)):
                self._seen.add(file)
                self._cases_in(file, root)

    def suite(self) -> Suite:
        cases = [self._cases[id] for id in sorted(self._cases)]
        return Suite(
            cases=tuple(case for case in cases if isinstance(case, Case)),
            policy_cases=tuple(case for case in cases if isinstance(case, PolicyCase)),
            problems=tuple(sorted(self._problems)),
            catalogues={root: catalogue for root, catalogue in self._catalogues.items() if catalogue},
            invalid=len(self._invalid),
        )

    def _root(self, file: Path, top: Path) -> Path:
        if file.parent not in self._roots:
            self._roots[file.parent] = root_of(file)
        root = self._roots[file.parent] or top
        if self._wanted is None:
            self._catalogue(root)
        return root

    def _catalogue(self, root: Path) -> Catalogue | None:
        if root not in self._catalogues:
            try:
                self._catalogues[root] = Catalogue.at(root)
            except InvalidCase as invalid:
                self._catalogues[root] = None
                self._problems += invalid.problems
        return self._catalogues[root]

    def _cases_in(self, file: Path, root: Path, only: str | None = None) -> None:
        """Add the cases of a file, or only the case that its matrix gives this name."""
        id = id_of(file, root)
        if not ID.fullmatch(id):
            self._reject(file, f"rename this file: its id {id!r} may contain only letters, digits, '.', '_' and '-'")
        elif id in self._cases and self._cases[id].path != file:
            other = self._cases[id].path
            shown = other.relative_to(root) if other.is_relative_to(root) else other
            self._reject(file, f"duplicate id {id!r}, already used by {shown}")
        else:
            try:
                self._add(read_any(file, id, self._catalogue(root)), file, only)
            except InvalidCase as invalid:
                self._invalid.add(file)
                self._problems += invalid.problems

    def _add(self, cases: tuple[Case | PolicyCase, ...], file: Path, only: str | None) -> None:
        names = {case.expansion if isinstance(case, Case) else "": case for case in cases}
        if only is not None and only not in names:
            self._problems.append(Problem(file, 0, 0, unknown("case of the matrix", only, filter(None, names))))
            return
        for case in cases if only is None else (names[only],):
            other = self._cases.setdefault(case.id, case)
            if other.path != file:
                self._reject(file, f"duplicate id {case.id!r}, already used by {other.path.name}")

    def _reject(self, file: Path, message: str) -> None:
        self._invalid.add(file)
        self._problems.append(Problem(file, 0, 0, message))


def _files(path: Path, problems: list[Problem]) -> Iterator[Path]:
    """The YAML files at or below a path, sorted, except hidden ones. What cannot be looked into is a problem: it may hold cases."""
    if not path.is_dir():
        if path.is_file():
            yield path
        return
    yaml_files: list[Path] = []

    def unreadable(error: OSError) -> None:
        problems.append(Problem(Path(error.filename), 0, 0, f"cannot read the folder: {error.strerror}"))

    for name, folders, files in os.walk(path, onerror=unreadable):
        folder = Path(name)
        folders[:] = [below for below in folders if not below.startswith(".")]
        problems += [
            Problem(folder / below, 0, 0, "a link to a folder is not followed; name the folder itself")
            for below in folders
            if (folder / below).is_symlink()
        ]
        for file in (folder / below for below in files if not below.startswith(".")):
            if file.is_symlink() and file.is_file() and not file.resolve().is_relative_to(path.resolve()):
                # A message would quote a file that the sender of the link may not be able to read.
                message = "a link to a file outside this folder is not followed; name the file itself"
                problems += [Problem(file, 0, 0, message)] if file.suffix in SUFFIXES else []
            elif file.suffix in SUFFIXES and file.is_file():
                yaml_files.append(file)
            elif (suffix := file.suffix.lower()) in SUFFIXES and file.is_file():
                message = f"rename this file, so that it ends in {suffix}: it is not read as {file.suffix}"
                problems.append(Problem(file, 0, 0, message))
            elif file.is_symlink() and not file.exists():
                problems.append(Problem(file, 0, 0, "a link to a file that does not exist"))
    yield from sorted(yaml_files)
