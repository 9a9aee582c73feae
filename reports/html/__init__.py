"""The report as static pages, which need no server and no network; the essentials work without JavaScript."""
