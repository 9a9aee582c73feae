"""Lets ``python -m conformance`` be the console script, where the folder of scripts is not on the PATH."""

from conformance.cli import program

program()
