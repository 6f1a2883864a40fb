"""Conversations in SQL: SQLite without a server, PostgreSQL when that is outgrown."""
