"""``conformance schema``: the JSON Schema of a case, for editors."""

from __future__ import annotations

import typer

EXAMPLES = """
Examples:

  # for a case whose first line is # yaml-language-server: $schema=schema.json
  conformance schema > my/cases/schema.json
"""


def schema() -> None:
    """Print the JSON Schema of a case, for editors."""
    from conformance.language.json_schema import rendered

    typer.echo(rendered(), nl=False)
