"""What the host refuses by its text, and the driver by Spark's own plans when it gets there all the same."""

from __future__ import annotations

import pytest
import yaml

from conformance.suite import discovery
from harness.engine.engine import DriverFailed
from harness.engine.request import request_for

REFUSED = [
    ({"sql": "SELECT TRANSFORM(n) USING 'touch {ran}' FROM v", "as": "v"}, "runs a script"),
    ({"sql": "SELECT v.n FROM v JOIN text.`{file}` ON true", "as": "v"}, "reads a table or a file"),
    ({"sql": "CREATE TABLE made AS SELECT 1 AS n", "as": "v"}, "is not a query"),
    ({"select": ["n", "reflect('java.lang.System', 'getProperty', 'user.name') AS home"]}, "calls reflect"),
    ({"select": [*["n"] * 40, "input_file_name() AS f"]}, "calls input_file_name"),
    ({"select": ["n", "_metadata.file_path AS f"]}, "_metadata, which shows paths"),
    ({"select": ["n", "_metadata"]}, "_metadata, which shows paths"),
    ({"select": ["n", "to_json(struct(n, _METADATA, n)) AS f"]}, "_metadata, which shows paths"),
]


def check_refused(engine, folder, operation, why):
    """The driver refuses a query with this operation, and nothing of it has run."""
    ran, file = folder / "ran", folder / "file"
    file.write_text("secret")
    if "sql" in operation:
        operation = {**operation, "sql": operation["sql"].format(ran=ran, file=file)}
    query = [{"from": "a"}, operation]
    (folder / "cases").mkdir(exist_ok=True)
    written = {"title": "x", "streams": {"a": "n INT"}, "query": query, "steps": [{"add": {"a": [[4]]}}]}
    (folder / "cases" / "x.yaml").write_text(yaml.safe_dump(written, sort_keys=False))
    loaded = discovery.load([folder / "cases"])
    loaded.raise_for_problems()
    (case,) = loaded.cases
    assert case.needs_code
    with pytest.raises(DriverFailed, match=why):
        engine.observe(request_for(case, engine.new_directory(case.id)), step_timeout=600)
    assert not ran.exists()
