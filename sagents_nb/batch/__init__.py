"""Many runs at once: a row of a series, a frame or an iterable each."""

from .rows import Answer, Row, run_row
from .run import Engine, amap_rows, map_rows

__all__ = ["Answer", "Engine", "Row", "amap_rows", "map_rows", "run_row"]
