"""The old place of the tables and their version, which projects import from here."""

from .database.schema import VERSION, Tables, tables

__all__ = ["VERSION", "Tables", "tables"]
