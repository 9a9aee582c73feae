"""The command line: each command parses its arguments, calls one function and renders what it gives."""
