"""Runs a script with pysqlite3, which brings an SQLite of its own, in the place of sqlite3."""

from __future__ import annotations

import os
import runpy
import sys

import pysqlite3
import pysqlite3.dbapi2

sys.modules |= {"sqlite3": pysqlite3, "sqlite3.dbapi2": pysqlite3.dbapi2}
del sys.argv[0]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
