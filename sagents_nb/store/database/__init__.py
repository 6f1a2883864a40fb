"""The database of a store: one thread, one connection, and the tables."""
