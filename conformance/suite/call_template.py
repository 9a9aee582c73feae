"""A case to start from, for the author's own function: its streams come from the text of the module, which is not executed."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.core.errors import WrongUsage

_TEMPLATE = """\
# yaml-language-server: $schema={schema}
# Replace the columns of each stream by yours and the rows by a few that matter to you.
# Then fill in the expectations from a real Spark: conformance case record {file} --allow-code
title: {function} computes the same on every Spark version
streams:
{streams}
query: {{call: "{function}", with: [{names}]}}
steps:
  - name: rows of the same minute
    add: {{{first}}}
  - name: later rows, which advance the watermark
    add: {{{later}}}
  - name: rows behind the watermark
    add: {{{late}}}
"""


def case_that_calls(name: str, folders: Sequence[Path], file: Path, schema: str) -> str:
    """The text of a valid case without expectations, which calls ``module:function`` with the session and a DataFrame a stream.

    Args:
        folders: where modules are looked for, in this order.
        file: the file of the case, for the comment that tells how to record it.
        schema: the address of the JSON Schema, as the case sees it.

    Raises WrongUsage: there is no such function in these folders, or it takes no streams.
    """
    streams = _streams(name, folders)
    return _TEMPLATE.format(
        schema=schema,
        file=file,
        function=name,
        names=", ".join(streams),
        streams="\n".join(f"  {name}: {column} TIMESTAMP, key STRING, amount INT" for name, column in streams.items()),
        first=", ".join(f'{stream}: [["12:01", a, 1], ["12:01", b, 2]]' for stream in streams),
        later=", ".join(f'{stream}: [["18:00", a, 4]]' for stream in streams),
        late=", ".join(f'{stream}: [["12:01", a, 8]]' for stream in streams),
    )


def _streams(name: str, folders: Sequence[Path]) -> Mapping[str, str]:
    """The parameters after the session, each with the column of its ``withWatermark`` if the function has one."""
    module, _, function = name.partition(":")
    path = Path(*module.split("."))
    candidates = (folder / name for folder in folders for name in (path.with_suffix(".py"), path / "__init__.py"))
    if (file := next((candidate for candidate in candidates if candidate.is_file()), None)) is None:
        looked = ", ".join(map(str, folders))
        raise WrongUsage(f"{name}: there is no module {module} in {looked}: name its folder with --code")
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise WrongUsage(f"{name}: {file} is not Python: {error}") from None
    definition = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function), None)
    if definition is None:
        raise WrongUsage(f"{name}: {file} defines no function {function!r} at its top level")
    parameters = [argument.arg for argument in (*definition.args.posonlyargs, *definition.args.args)][1:]
    if not parameters:
        raise WrongUsage(f"{name}: the function takes no stream: {function}(spark, orders, …) takes the stream orders")
    columns: dict[str, str] = {}
    for node in ast.walk(definition):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=stream), attr="withWatermark"),
                args=[ast.Constant(value=str(column)), *_],
            ) if column.isidentifier():
                columns.setdefault(stream, column)
    return {parameter: columns.get(parameter, "event_time") for parameter in parameters}
