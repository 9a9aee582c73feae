"""Commands in this process, which has imported everything."""

import pytest

from conformance.cli.main import main


def exit_code_of(*arguments: str) -> int:
    """Carry out a command line and return its exit code."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def answer_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Carry out a command line and return its exit code, standard output and standard error."""
    code = exit_code_of(*arguments)
    return (code, *capsys.readouterr())
