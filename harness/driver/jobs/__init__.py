"""The code of a case's author: its functions, programs and main methods, and the queries that it may not start itself."""
