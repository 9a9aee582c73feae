"""A checkout in which whatever could run by accident leaves a canary: a file that shows that code of the checkout has run."""

from pathlib import Path

from tests.support.environments import script, wheel

MODULES = (
    "venv",
    "sitecustomize",
    "usercustomize",
    "conftest",
    "tomllib",
    "shlex",
    "tempfile",
    "csv",
    "lzma",
    "sqlite3",
    "json",
    "typing",
    "ast",
    "dataclasses",
    "runpy",
    "setup",
    "twine",
    "build",
)
"""Modules that Python would import, were the checkout on its path."""
PACKAGES = (
    "pip",
    "ensurepip",
    "uv",
    "mkdocs",
    "conformance",
    "harness",
    "reports",
    "pyspark",
    "docker",
    "hypothesis",
    "sqlglot",
)
PROGRAMS = ("uv", "git", "java", "docker", "podman", "python", "python3", "pip")


def offline(root: Path) -> dict[str, str]:
    """The variables of a machine with an empty home below ``root``, whose package index and container engine cannot be reached."""
    (root / "home").mkdir()
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(root / "home"),
        "CONFORMANCE_CACHE": str(root / "cache"),
        "PIP_CONFIG_FILE": "/dev/null",
        "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
        "UV_HTTP_RETRIES": "0",
        "UV_PYTHON_DOWNLOADS": "never",
        "DOCKER_HOST": "tcp://127.0.0.1:9",
    }


def pyspark_wheel(folder: Path, version: str, pth: str = "") -> None:
    """Write a wheel named pyspark.

    Args:
        pth: what Python runs whenever it starts in an environment that has the wheel.
    """
    files = {"pyspark/__init__.py": f"__version__ = {version!r}\n", "pyspark-start.pth": pth}
    wheel(folder, "pyspark", version, {name: text for name, text in files.items() if text})


def hostile_checkout(root: Path, canary: Path) -> Path:
    """Make the checkout and return it.

    Args:
        root: where it shall be.
        canary: the file that code of the checkout writes.
    """
    root.mkdir(parents=True)
    code = f"open({str(canary)!r}, 'a').write(__name__ + '\\n')"
    for name in MODULES:
        (root / f"{name}.py").write_text(code + "\n", encoding="utf-8")
    for name in PACKAGES:
        (root / name).mkdir()
        for file in ("__init__.py", "__main__.py"):
            (root / name / file).write_text(code + "\n", encoding="utf-8")
    for name in PROGRAMS:
        script(root / "bin" / name, f"echo {name} >> '{canary}'")
    for name in ("start.pth", "distutils-precedence.pth"):
        (root / name).write_text(f"import builtins; {code}\n", encoding="utf-8")
    pyspark_wheel(root / "wheels", "3.5.9", f"import builtins; {code}\n")
    source = f'find-links = ["{root / "wheels"}"]\nno-index = true\n'
    (root / "uv.toml").write_text(source, encoding="utf-8")
    (root / "pyproject.toml").write_text(
        f"[build-system]\nrequires = []\nbuild-backend = 'setup'\nbackend-path = ['.']\n[tool.uv]\n{source}"
        "[tool.conformance]\ncode = '.'\nconf = {'spark.plugins' = 'org.example.Evil'}\n"
        "[tool.pytest.ini_options]\naddopts = '-p setup'\n",
        encoding="utf-8",
    )
    (root / "conformance.yaml").write_text("images: {all: 'localhost/evil:{spark}'}\n", encoding="utf-8")
    (root / "pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {root / 'wheels'}\n", encoding="utf-8")
    (root / ".python-version").write_text("2.7\n", encoding="utf-8")
    return root
