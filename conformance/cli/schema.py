"""``conformance case schema``: the JSON Schema of a case, for editors."""

import typer


def schema() -> None:
    """Print the JSON Schema of a case, for editors."""
    from conformance.language.json_schema import rendered

    typer.echo(rendered(), nl=False)
