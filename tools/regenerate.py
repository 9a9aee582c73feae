"""Writes again what follows from the code: the JSON Schemas, and the messages that the tests of the case language expect. Also the
numbers of the published results in the README and the docs.

``python -m tools.regenerate`` writes the files and names those that changed; look at the difference before you commit it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

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
    yield from stated_numbers.files()
    yield stated_numbers.transcript()


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
