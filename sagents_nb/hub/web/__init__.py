"""The hub over HTTP: one table of routes, and what stands before it."""
