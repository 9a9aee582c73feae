"""A declarative pipeline as a folder: the files that its ``spark-pipeline.yml`` names, and the settings that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.language.source import ProblemReport, read_yaml

SPECS = ("spark-pipeline.yml", "spark-pipeline.yaml")


def read_folder(text: str) -> tuple[tuple[Path, ...], Mapping[str, str], str]:
    """Return the files of a pipeline as Spark's runner finds them, its settings and database; ``text``: its folder, or its specification.

    Raises WrongUsage: there is no specification, or Spark's runner would refuse it.
    """
    spec = next((path for name in SPECS if (path := Path(text) / name).is_file()), Path(text))
    if not spec.is_file():
        raise WrongUsage(f"{text} has no file {SPECS[0]}: name the folder of a pipeline, or a file of the job")
    report, files = ProblemReport(spec), dict[Path, None]()
    node = read_yaml(spec, report)
    if node is None or report.problems:
        raise WrongUsage("\n".join(map(str, report.problems)))
    read: Json = node.plain()
    patterns, conf = list[str](), dict[str, str]()
    try:
        patterns = [library["glob"]["include"] for library in read["libraries"]]
        conf = dict(read.get("configuration", {}))
        is_taken = all(isinstance(text, str) for text in (*patterns, *conf, *conf.values()))
    except (TypeError, KeyError, ValueError, AttributeError):
        is_taken = False
    if not is_taken:
        how = "libraries: [{glob: {include: transformations/**}}], and settings of configuration in quotes"
        raise WrongUsage(f"{spec} is not a pipeline that Spark's runner takes: write {how}")
    for pattern in patterns:
        found = [*spec.parent.glob(pattern + "/*" if pattern.endswith("/**") else pattern)]
        found = sorted(file for file in found if file.is_file() and "__pycache__" not in file.parts)
        if strange := [str(file) for file in found if file.suffix not in (".py", ".sql")]:
            raise WrongUsage(f"{spec}: {pattern}: Spark's runner refuses {strange[0]}, neither .py nor .sql: move it")
        if not found or "*" in pattern.removesuffix("/**"):
            how = f"write a file below {spec.parent.resolve()}, or a folder of files and /**, as transformations/**"
            raise WrongUsage(f"{spec}: {pattern} names no file as Spark's runner reads it: {how}")
        files |= dict.fromkeys(found)
    return tuple(files), conf, str(read.get("database") or read.get("schema") or "default")
