"""Millions of rows through one query whose engine is killed, and invariants that hold of every stream: docs/soak.md."""
