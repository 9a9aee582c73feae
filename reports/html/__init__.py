"""The report people open: static pages that need no server, no network and, for what matters, no JavaScript."""
