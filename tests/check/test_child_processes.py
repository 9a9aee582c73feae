"""One module of the product starts programs: `conformance.core.child_process`, which asks where they run and what they see."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STARTS = "conformance/core/child_process.py"
GUARD = "harness/runtimes/kafka_guard.py"
"""Runs as a program of its own with the standard library only, so that it outlives who started it."""
ALLOWED = {
    STARTS: {"subprocess.Popen"},
    GUARD: {"subprocess.Popen"},
    "reports/analysis/divided_work.py": {"concurrent.ProcessPoolExecutor", "multiprocessing.get_context"},
}
STARTERS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {"system", "popen", "startfile", "fork", "forkpty"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "pty": {"spawn", "fork"},
    "multiprocessing": {"Process", "Pool", "get_context", "set_start_method"},
    "concurrent": {"ProcessPoolExecutor"},
}

_STARTER = re.compile(rf"\b({'|'.join(STARTERS)})\b")


def started(text: str) -> Iterator[str]:
    """Each function named in a source that starts a process: as an attribute of its module, or imported from it."""
    if not _STARTER.search(text):
        return  # most sources; it saves the time to parse them
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            named = [(node.value.id, node.attr)]
        elif isinstance(node, ast.ImportFrom):
            named = [((node.module or "").partition(".")[0], alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            # Under another name, the attributes above would not be seen.
            named = [(alias.name.partition(".")[0], "as") for alias in node.names if alias.asname]
        else:
            continue
        for module, name in named:
            of_os = module == "os" and name.startswith(("spawn", "exec", "posix_spawn"))
            if module in STARTERS and (of_os or name == "as" or name in STARTERS[module]):
                yield f"{module}.{name}"


def sources() -> list[Path]:
    return sorted(path for root in ("conformance", "harness", "reports") for path in (ROOT / root).rglob("*.py"))


def test_one_module_starts_programs() -> None:
    found = {str(path.relative_to(ROOT)): {*started(path.read_text(encoding="utf-8"))} for path in sources()}
    assert len(found) > 200
    assert {name: how - ALLOWED.get(name, set()) for name, how in found.items() if how} == {
        name: set() for name, how in found.items() if how
    }


@pytest.mark.parametrize("path", [STARTS, GUARD])
def test_where_it_runs_and_what_it_sees_is_said(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "subprocess.Popen"
    ]
    assert len(calls) == 1
    assert {"cwd", "env"} <= {keyword.arg for keyword in calls[0].keywords}


def test_a_python_does_not_import_from_where_it_runs() -> None:
    """``-I`` or ``-P`` before ``-m`` and ``-c``. An engine's Python runs in a folder of its own, and the oldest know no ``-P``."""
    found = []
    for path in sources():
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"['\"]-[mc]['\"]", text) else ():
            if isinstance(node, ast.List):
                words = [part.value for part in node.elts if isinstance(part, ast.Constant)]
                if {"-m", "-c"} & {*words} and not {"-I", "-P"} & {*words}:
                    found.append(str(path.relative_to(ROOT)))
    assert found == ["harness/runtimes/containers/runtime.py", "harness/runtimes/program.py"]


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run(['uv'])",
        "from subprocess import check_output",
        "import subprocess as s",
        "import os\nos.execvp('uv', ['uv'])",
        "import os\nos.posix_spawn('uv', ['uv'], {})",
        "import os\nos.spawnlp(os.P_WAIT, 'uv')",
        "from asyncio import create_subprocess_exec",
        "from concurrent.futures import ProcessPoolExecutor",
    ],
)
def test_a_process_that_is_started_otherwise_is_found(text: str) -> None:
    assert [*started(text)]
