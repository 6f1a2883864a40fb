"""The old place of what engines of ``agent.map`` are made of; it is :mod:`sagents_nb.batch` now."""

from .batch import Answer, Engine, Row, amap_rows, map_rows, run_row

__all__ = ["Answer", "Engine", "Row", "amap_rows", "map_rows", "run_row"]
