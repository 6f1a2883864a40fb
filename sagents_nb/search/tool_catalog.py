"""Tools found by what they are for, and by the questions that they have answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from ..tools import ToolSpec
from .lexical import Hit, LexicalIndex
from .vectors import Embedder, VectorIndex, fused
from .words import query_words, schema_words, spaced

# The name says most, parameters are many words; queries are how people say it.
_WEIGHTS = {"name": 2, "description": 1, "parameters": 0.6, "queries": 1}

MOST_QUERIES = 40
"""Of each tool the newest so many that it answered are remembered."""

_FURTHER = 20  # of each ranking, where two are made one


class ToolCatalog:
    """``tools`` to be searched; ``embedder`` finds those that say it in other words.

    ``answered`` are queries that each of them was of use for. Of the same query the same tools
    are found, but for what :meth:`answered` has added since.

    >>> tide = ToolSpec("tides", "When the tide is high.", {"properties": {"port": {}}})
    >>> city = ToolSpec("find_city", "Where a city is.", {"properties": {"name": {}}})
    >>> catalog = ToolCatalog([tide, city])
    >>> [hit.id for hit in catalog.search("When is high tide in Bergen?")]
    ['tides']
    """

    def __init__(
        self,
        tools: Iterable[ToolSpec],
        embedder: Embedder | None = None,
        answered: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self._tools = {spec.name: spec for spec in sorted(tools, key=lambda spec: spec.name)}
        self._queries = {n: deque(q, maxlen=MOST_QUERIES) for n, q in (answered or {}).items()}
        self._embedder = embedder
        self._vectors: VectorIndex | None = None
        self._index = LexicalIndex(_WEIGHTS)
        self._index.put({name: self._said_of(spec) for name, spec in self._tools.items()})

    def _said_of(self, spec: ToolSpec) -> dict[str, str]:
        return {
            "name": spaced(spec.name),
            "description": spec.description,
            "parameters": schema_words(spec.schema),
            "queries": " ".join(self._queries.get(spec.name, ())),
        }

    def answered(self, query: str, name: str) -> str:
        """Remember that the tool of that ``name`` was of use for ``query``.

        It gives the words of that, or "" where they were known, or say nothing.
        """
        words = " ".join(query_words(query))
        known = self._queries.setdefault(name, deque(maxlen=MOST_QUERIES))
        if name not in self._tools or not words or words in known:
            return ""
        known.append(words)
        self._index.put({name: self._said_of(self._tools[name])})
        return words

    def search(
        self, query: str, limit: int = 8, min_score: float = 0.3, without: Sequence[str] = ()
    ) -> list[Hit]:
        """The tools that fit ``query`` best, at most so many.

        Their scores are shares of the best one's; those below ``min_score`` are left out.
        """
        return self._best(self._index.search(query, limit, without), min_score)

    def search_by_meaning(
        self, query: str, limit: int = 8, min_score: float = 0.3, without: Sequence[str] = ()
    ) -> list[Hit]:
        """:meth:`search`, with the ranks of the embedder; it waits for that."""
        if self._embedder is None:
            return self.search(query, limit, min_score, without)
        if self._vectors is None:
            texts = [f"{spaced(spec.name)}: {spec.description}" for spec in self._tools.values()]
            self._vectors = VectorIndex(self._embedder, list(self._tools), texts)
        by_words = self._best(self._index.search(query, _FURTHER, without), min_score)
        by_meaning = self._vectors.search(query, _FURTHER, without)
        return self._best(fused(by_words, by_meaning)[:limit], 0)

    @staticmethod
    def _best(hits: Sequence[Hit], min_score: float) -> list[Hit]:
        best = hits[0].score if hits else 0.0
        shares = (Hit(hit.id, hit.score / best if best > 0 else 0.0) for hit in hits)
        return [hit for hit in shares if hit.score >= min_score]
