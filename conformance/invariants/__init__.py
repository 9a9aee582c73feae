"""Laws: what holds of a stream under a watermark whatever its rows are. One module a law.

Each is a question to the tables that a soak leaves behind, and it holds where no row answers. ``law`` says what the tables are.
"""
