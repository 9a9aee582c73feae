"""Writes again what follows from the code: the JSON Schemas, and the messages that the tests of the case language expect. Also the
numbers of the published results in the README and the docs, the figures of docs/performance.md, and what the search reads of the docs.

``python -m tools.regenerate`` writes the files and names those that changed; look at the difference before you commit it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks import __main__ as figures
from conformance.core.data import Json
from conformance.language import InvalidCase, read_any
from conformance.language.json_schema import rendered
from harness.engine.protocol import schemas
from reports.exports import everything
from reports.results import records
from tools import stated_numbers

ROOT = Path(__file__).parent.parent


def files() -> Iterator[tuple[Path, str]]:
    """Give each file with its text."""
    yield ROOT / "cases" / "schema.json", rendered()
    yield ROOT / "reports" / "results" / "results.schema.json", _as_text(records.json_schema())
    yield ROOT / "reports" / "exports" / "everything.schema.json", _as_text(everything.json_schema())
    for name, schema in schemas():
        yield ROOT / "harness" / "engine" / "messages" / f"{name}.schema.json", _as_text(schema)
    for path in sorted((ROOT / "tests" / "unit" / "conformance" / "language" / "invalid").glob("*.yaml")):
        try:
            read_any(path, path.stem)
        except InvalidCase as invalid:
            lines = (f"{problem.line}:{problem.column}: {problem.message}\n" for problem in invalid.problems)
            yield path.with_suffix(".txt"), "".join(lines)
    yield ROOT / "reports" / "html" / "documentation.yaml", documentation()
    yield figures.PAGE, figures.page()
    yield from stated_numbers.files()
    yield stated_numbers.transcript()


def documentation() -> str:
    """Return what the search of the report reads of the pages in ``docs``: titles, first paragraphs, headings and names."""
    pages = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        names = dict.fromkeys(re.findall(r"`([\w-]*(?:[._-][\w-]+)+)\b", text))
        title, *parts = (_plain(one) for one in re.findall(r"^#+ (.+)$", text, re.MULTILINE))
        begins = re.search(r"\n\n(?![\n#|<>!-]|```)(.+?)(?:\n\n|\Z)", text, re.DOTALL)
        name = path.relative_to(ROOT / "docs").with_suffix("").as_posix()
        pages[name] = {
            "title": title,
            "begins": _plain(begins[1]) if begins else "",
            "parts": parts,
            "names": list(names),
        }
    head = (
        "# What the search of the report reads of the documentation, made from docs by `python -m tools.regenerate`.\n"
    )
    return head + yaml.safe_dump(pages, sort_keys=False, allow_unicode=True, width=120)


def _plain(markdown: str) -> str:
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub("[`*]", "", markdown)).split())


def _as_text(schema: Json) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files whose text is another one."""
    for path, text in files():
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        # The order of keys may be another one in each run.
        if before != text and not (before and path.suffix == ".json" and json.loads(before) == json.loads(text)):
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
