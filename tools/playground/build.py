"""Add the playground to a site: ``python -m tools.playground.build SITE``, after ``conformance report -o SITE``.

The page runs the reference model in the browser. Pyodide comes from npm, the compiled part of pydantic from PyPI; both are pinned.
All other packages are those of this environment, as far as they are plain Python. Nothing of this is in the wheel.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

PYODIDE = "314.0.7"
PYDANTIC, PYDANTIC_CORE = "2.14.3", "2.50.4"
WASM = (
    "--platform",
    "pyemscripten_2026_0_wasm32",
    "--python-version",
    "3.14",
    "--implementation",
    "cp",
    "--abi",
    "cp314",
)
"""What this Pyodide runs."""

RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
PACKAGES = (
    "annotated_types",
    "jinja2",
    "markdown_it",
    "markupsafe",
    "mdurl",
    "packaging",
    "rich",
    "sqlglot",
    "typing_extensions",
    "typing_inspection",
    "yaml",
)
OURS = ("conformance", "reports", "tools/playground")
LEFT_OUT = ("__pycache__", "baselines", "cases")
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLACE = "<div data-playground></div>"
LINK = (
    '<p class="lead" data-playground><a href="playground.html">Playground</a>: '
    "change the rows, the delay, the mode or the version yourself.</p>"
)


class NotBuilt(RuntimeError):
    """The playground could not be built; the message says why."""


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1:
        sys.exit("usage: python -m tools.playground.build SITE")
    try:
        build(Path(arguments[0]))
    except NotBuilt as problem:
        sys.exit(f"playground: {problem}")


def build(site: Path) -> Path:
    """Add the page and the folder ``playground`` to a report, show the link to it, and return the page. Raises ``NotBuilt``."""
    understand = site / "understand.html"
    text = understand.read_text(encoding="utf-8") if understand.is_file() else ""
    if PLACE not in text and LINK not in text:
        raise NotBuilt(f"{site} is no report: run conformance report -o {site} first")
    folder = site / "playground"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for file in _runtime(Path(work)):
            shutil.copy(file, folder / file.name)
        _write_app(folder / "app.zip", _wheels(Path(work)))
    shutil.copy(HERE / "playground.js", folder / "playground.js")
    shutil.copy(HERE / "page.html", site / "playground.html")
    understand.write_text(text.replace(PLACE, LINK), encoding="utf-8")
    return site / "playground.html"


def _runtime(work: Path) -> Iterator[Path]:
    _run("npm", "pack", "--silent", f"pyodide@{PYODIDE}", cwd=work)
    with tarfile.open(next(work.glob("pyodide-*.tgz"))) as archive:
        archive.extractall(work / "npm", filter="data")
    for name in RUNTIME:
        yield work / "npm" / "package" / name


def _wheels(work: Path) -> tuple[Path, ...]:
    wanted = ("--no-deps", "--only-binary", ":all:", "--quiet", "--disable-pip-version-check", "--dest", "wheels")
    for name in (f"pydantic=={PYDANTIC}", f"pydantic-core=={PYDANTIC_CORE}"):
        _run(sys.executable, "-m", "pip", "download", *wanted, *WASM, name, cwd=work)
    return tuple(sorted((work / "wheels").glob("*.whl")))


def _write_app(path: Path, wheels: Sequence[Path]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as app:
        for name, content in sorted({**dict(_of_wheels(wheels)), **dict(_of_packages()), **dict(_of_suite())}.items()):
            app.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def _of_wheels(wheels: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())


def _of_packages() -> Iterator[tuple[str, bytes]]:
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise NotBuilt(f"the package {name} is not installed")
        origin = Path(spec.origin)
        package = spec.submodule_search_locations is not None
        yield from _files(origin.parent, origin.parents[1]) if package else [(origin.name, origin.read_bytes())]


def _of_suite() -> Iterator[tuple[str, bytes]]:
    yield "tools/__init__.py", b""
    for name in OURS:
        yield from _files(ROOT / name, ROOT)


def _files(folder: Path, root: Path) -> Iterator[tuple[str, bytes]]:
    """Plain Python and data, without what only the machine of this environment runs."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and path.suffix not in (".so", ".pyd") and not set(name.parts) & set(LEFT_OUT):
            yield name.as_posix(), path.read_bytes()


def _run(*command: str, cwd: Path) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NotBuilt(f"{command[0]}: {problem}") from None
    if done.returncode:
        raise NotBuilt(f"{' '.join(command[:4])} failed: {(done.stderr or done.stdout).strip()[-500:]}")


if __name__ == "__main__":
    main(sys.argv[1:])
