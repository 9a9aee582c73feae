"""Runs a notebook of the author's, whose cells the host has read, with the names that its platform gives it: ``spark``, ``dbutils`` …

Nothing of a platform is asked: values are those that the user gives, and files lie in a folder of the trial.
"""

from __future__ import annotations

import importlib.util
import linecache
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections import namedtuple
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Sequence

from .modules import importable, made

_HEADER = re.compile(r"# (.+), line (\d+), (Python|SQL)$")
_SCHEME = re.compile(r"^\w+:/*")


class NotGiven(Exception):
    """What a notebook asks its platform for, and nobody gives."""


class _Ended(BaseException):
    """``dbutils.notebook.exit``. No ``Exception``, which a notebook may catch."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


@dataclass(frozen=True)
class _Cell:
    place: str
    line: int
    is_sql: bool
    text: str

    @classmethod
    def read(cls, written: str) -> _Cell:
        header, _, text = written.partition("\n")
        found = _HEADER.match(header)
        if found is None:
            raise ValueError(
                "a cell begins with a comment such as '# job.ipynb, cell 1, line 1, Python', not {!r}".format(header)
            )
        return cls(found.group(1), int(found.group(2)), found.group(3) == "SQL", text)

    def run(self, names: Dict[str, Any], folder: str, sql: Callable[[str], None]) -> None:
        """Run it; the frames of what it raises name the cell, as a file in a folder of the author's, and its line."""
        file = os.path.join(folder, self.place)
        before = "\n" * (self.line - 1)
        if self.is_sql:
            exec(compile(before + "_sql(_text)", file, "exec"), {"_sql": sql, "_text": self.text})
            return
        # A traceback shows the lines of a file that linecache has.
        linecache.cache[file] = len(self.text), None, (before + self.text).splitlines(True), file
        exec(compile(before + self.text, file, "exec", dont_inherit=True), names)


class _Part:
    """A part of ``dbutils``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotGiven("{}.{} is of the platform, and a trial has none: leave it out".format(self._name, name))


class _Values(_Part):
    """A part that gives values of the user."""

    def __init__(self, name: str, given: Dict[str, str]) -> None:
        super().__init__(name)
        self._given = given

    def _value(self, what: str, name: str, default: Any = None, note: str = "") -> Any:
        value = self._given.get(name, default)
        if value is None:
            raise NotGiven("the {0} {1} has no value: give it, --set {1}=VALUE{2}".format(what, name, note))
        return value


class _Widgets(_Values):
    def __init__(self, given: Dict[str, str]) -> None:
        super().__init__("dbutils.widgets", given)
        self._defined: Dict[str, str] = {}

    def text(self, name: str, defaultValue: Any = "", *_: Any, **__: Any) -> None:  # noqa: N803
        self._defined[name] = str(defaultValue)

    dropdown = combobox = multiselect = text

    def get(self, name: str) -> str:
        return str(self._value("widget", name, self._defined.get(name)))

    getArgument = get  # noqa: N815

    def give(self, values: Dict[str, str]) -> None:
        """Take what ``%run`` passes on; what the user gives stays."""
        self._given = {**values, **self._given}

    def getAll(self) -> Dict[str, str]:  # noqa: N802
        return {name: self.get(name) for name in self._defined}

    def remove(self, name: str) -> None:
        self._defined.pop(name, None)

    def removeAll(self) -> None:  # noqa: N802
        self._defined.clear()


class _Secrets(_Values):
    def get(self, scope: str, key: str) -> str:
        note = "; made up will do, since no source is connected"
        return str(self._value("secret", "{}/{}".format(scope, key), note=note))

    getSecret = getSecretWithLS = get  # noqa: N815

    def getBytes(self, scope: str, key: str) -> bytes:  # noqa: N802
        return self.get(scope, key).encode()


class _Environment(_Values):
    """What Synapse and Fabric say of themselves, such as ``mssparkutils.env.getWorkspaceName()``."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("get"):
            return super().__getattr__(name)
        return lambda: str(self._value("name", "env/" + name))


FileInfo = namedtuple("FileInfo", "path name size modificationTime")


class _Files(_Part):
    """Files in a folder of the trial, empty at first, whatever the scheme of a path."""

    def __init__(self) -> None:
        super().__init__("dbutils.fs")
        self._root = tempfile.mkdtemp(prefix="notebook-")

    def _at(self, path: str, *, there: bool = True) -> str:
        inside = os.path.join(self._root, os.path.normpath("/" + _SCHEME.sub("", path)).lstrip("/"))
        if there and not os.path.exists(inside):
            raise NotGiven(
                "there is no {} in the trial: {} has an empty folder at first, and Spark does not read it".format(
                    path, self._name
                )
            )
        return inside

    def ls(self, path: str) -> List[FileInfo]:
        place = self._at(path)
        if not os.path.isdir(place):
            return [self._info(path, place)]
        folder = path.rstrip("/") + "/"
        return [self._info(folder + name, os.path.join(place, name)) for name in sorted(os.listdir(place))]

    def _info(self, path: str, file: str) -> FileInfo:
        slash, seen = "/" if os.path.isdir(file) else "", os.stat(file)
        return FileInfo(
            path + slash, os.path.basename(path) + slash, 0 if slash else seen.st_size, int(seen.st_mtime * 1000)
        )

    def head(self, path: str, maxBytes: int = 65536) -> str:  # noqa: N803
        with open(self._at(path), "rb") as file:
            return file.read(maxBytes).decode("utf-8", "replace")

    def mkdirs(self, path: str) -> bool:
        os.makedirs(self._at(path, there=False), exist_ok=True)
        return True

    def put(self, path: str, contents: str, overwrite: bool = False) -> bool:
        file = self._at(path, there=False)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w" if overwrite else "x", encoding="utf-8") as opened:
            opened.write(contents)
        return True

    def rm(self, path: str, recurse: bool = False) -> bool:
        place = self._at(path, there=False)
        there = os.path.exists(place)
        if there:
            remove = os.remove if not os.path.isdir(place) else shutil.rmtree if recurse else os.rmdir
            remove(place)
        return there

    def cp(self, source: str, to: str, recurse: bool = False) -> bool:
        here, there = self._at(source), self._at(to, there=False)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        shutil.copytree(here, there) if recurse and os.path.isdir(here) else shutil.copy(here, there)
        return True

    def mv(self, source: str, to: str, recurse: bool = False) -> bool:
        return self.cp(source, to, recurse) and self.rm(source, recurse)

    def mount(self, *_: Any, **__: Any) -> bool:
        return True

    unmount = refreshMounts = updateMount = mount  # noqa: N815

    def mounts(self) -> List[Any]:
        return []


class _Notebooks(_Part):
    def __init__(self, platform: Platform) -> None:
        super().__init__("dbutils.notebook")
        self._platform = platform

    def run(self, path: str, timeout_seconds: Any = 0, arguments: Any = None, *_: Any) -> str:  # noqa: ARG002
        return self._platform.child(path, {name: str(value) for name, value in (arguments or {}).items()})

    def exit(self, value: Any = "") -> None:
        raise _Ended(value)


class _TaskValues(_Values):
    def get(self, taskKey: str, key: str, default: Any = None, debugValue: Any = None) -> Any:  # noqa: N803
        usual = default if debugValue is None else debugValue
        return self._value("task value", "{}/{}".format(taskKey, key), usual)

    def set(self, key: str, value: Any) -> None: ...


def _nothing(*_: Any, **__: Any) -> None:
    """Shows nothing, restarts nothing."""


def _modules(names: Dict[str, Any]) -> Iterator[ModuleType]:
    """The modules that a platform has beside its packages; ``names``: of a notebook."""
    dbutils = names["dbutils"]
    yield made("pyspark.dbutils", {"DBUtils": lambda *_: dbutils})
    if "databricks" not in sys.modules and importlib.util.find_spec("databricks") is None:
        yield made("databricks", {"__path__": []})
        yield made("databricks.sdk", {"__path__": [], "__getattr__": _Part("databricks.sdk").__getattr__})
    yield made("databricks.sdk.runtime", names)
    yield made("notebookutils", dict(vars(dbutils), mssparkutils=dbutils, __getattr__=dbutils.__getattr__))
    yield made("IPython", {"__path__": [], "get_ipython": _nothing})
    yield made("IPython.display", dict.fromkeys(("display", "clear_output", "HTML", "Markdown"), _nothing))
    yield made("findspark", dict.fromkeys(("init", "add_jars", "add_packages"), _nothing))


class Platform:
    """``cells``: of each notebook, by its name, the first is run; ``values``: of widgets and secrets; ``folder``: of the author's files;
    ``passes_over``: whether the next cell runs although this one raised an exception."""

    def __init__(
        self,
        session: Any,
        cells: Dict[str, Sequence[str]],
        values: Dict[str, str],
        folder: str,
        passes_over: Callable[[Exception], bool] = lambda _: False,
    ) -> None:
        self.session, self.cells, self.values, self.folder = session, cells, values, folder
        self._passes_over = passes_over
        self._files = _Files()

    def run(self) -> None:
        self._run(next(iter(self.cells)), self.values)

    def importable(self) -> ContextManager[None]:
        """Let a program import in the block what its platform gives a notebook."""
        return importable(*_modules(self._names(_Widgets(self.values), self.values)))

    def child(self, path: str, values: Dict[str, str]) -> str:
        if path not in self.cells:
            what = "{} is not read: dbutils.notebook.run is followed where its path is a text in the call"
            raise NotGiven(what.format(path))
        return self._run(path, dict(self.values, **values))

    def _run(self, name: str, values: Dict[str, str]) -> str:
        # Functions of a module of this name reach Python workers by value.
        widgets = _Widgets(values)
        given = self._names(widgets, values)
        module = made("__main__", given)
        names = vars(module)

        def sql(text: str) -> None:
            given = {**widgets.getAll(), **values}
            for key, value in given.items():
                # `$day` is how Databricks wrote it before `:day`.
                text = re.sub(r"\$(?:{0}\b|\{{{0}\}})".format(re.escape(key)), value.replace("\\", r"\\"), text)
            markers = {
                key: value for key, value in given.items() if re.search(r"(?<!:):" + re.escape(key) + r"\b", text)
            }
            names["_sqldf"] = self.session.sql(text, args=markers) if markers else self.session.sql(text)

        try:
            with importable(module, *_modules(given)):
                for cell in map(_Cell.read, self.cells[name]):
                    try:
                        cell.run(names, self.folder, sql)
                    except Exception as error:
                        if not self._passes_over(error):
                            raise
        except _Ended as ended:
            return str(ended.value)
        return ""

    def _names(self, widgets: _Widgets, values: Dict[str, str]) -> Dict[str, Any]:
        """What a notebook has without an import, as Databricks, Synapse and Fabric give it."""
        dbutils = self._utils(widgets, values)
        names = {
            "spark": self.session,
            "dbutils": dbutils,
            **dict.fromkeys(("display", "displayHTML", "get_ipython"), _nothing),
            "getArgument": widgets.get,
        }
        names["mssparkutils"] = names["notebookutils"] = dbutils
        with suppress(Exception), warnings.catch_warnings():  # Connect has neither
            names["sc"] = self.session.sparkContext
            warnings.simplefilter("ignore")
            from pyspark.sql import SQLContext

            names["sqlContext"] = SQLContext(names["sc"], self.session)
        return names

    def _utils(self, widgets: _Widgets, values: Dict[str, str]) -> Any:
        utils = _Part("dbutils")
        jobs, library, data = map(_Part, ("dbutils.jobs", "dbutils.library", "dbutils.data"))
        vars(jobs)["taskValues"] = _TaskValues("dbutils.jobs.taskValues", values)
        vars(library)["restartPython"] = vars(data)["summarize"] = _nothing
        vars(utils).update(
            widgets=widgets,
            secrets=_Secrets("dbutils.secrets", values),
            credentials=_Secrets("dbutils.credentials", values),
            env=_Environment("mssparkutils.env", values),
            fs=self._files,
            notebook=_Notebooks(self),
            jobs=jobs,
            library=library,
            data=data,
        )
        return utils
