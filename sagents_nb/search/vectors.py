"""Search by meaning, with somebody's embedder, and how its ranks go with those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from ..errors import ConfigurationError
from .lexical import Hit

Embedder = Callable[[list[str]], Any]
"""Gives for texts as many vectors of one length: a list of lists, or an array."""

_K = 60.0  # of reciprocal rank fusion, as Cormack, Clarke and Büttcher (SIGIR 2009) have it


def embedded(embedder: Embedder, texts: Sequence[str]) -> Any:
    """What an ``embedder`` makes of texts: an array of their vectors, each of length 1.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no vector for each, and
    without NumPy.
    """
    try:
        import numpy
    except ImportError:
        raise ConfigurationError("An embedder needs NumPy: pip install numpy.") from None
    vectors = numpy.asarray(embedder(list(texts)), dtype=numpy.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not numpy.isfinite(vectors).all():
        raise ConfigurationError(
            f"The embedder gave an array of {vectors.shape} for {len(texts)} texts; it is to "
            "give a vector of numbers for each."
        )
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / numpy.where(lengths == 0, 1, lengths)


def nearest(vectors: Any, vector: Any) -> Iterator[tuple[int, float]]:
    """The places of ``vectors`` by how near they are to ``vector``, with that, the nearest first.

    All are of length 1, as :func:`embedded` makes them; of equals the first comes first.
    """
    import numpy

    scores = vectors @ vector
    return ((int(n), float(scores[n])) for n in numpy.argsort(-scores, kind="stable"))


class VectorIndex:
    """Texts by ids, compared by the cosine of what an ``embedder`` makes of them."""

    def __init__(self, embedder: Embedder, ids: Sequence[str], texts: Sequence[str]) -> None:
        self._embedder = embedder
        self._ids = list(ids)
        self._vectors = embedded(embedder, texts)

    def search(self, query: str, limit: int, without: Sequence[str] = ()) -> list[Hit]:
        """What is nearest to ``query``, at most so many."""
        places = nearest(self._vectors, embedded(self._embedder, [query])[0])
        hits = (Hit(self._ids[n], score) for n, score in places)
        return list(islice((hit for hit in hits if hit.id not in without), limit))


def fused(*rankings: Sequence[Hit]) -> list[Hit]:
    """One ranking of several, by the ranks alone: their scores are of different kinds.

    >>> fused([Hit("a", 9.0), Hit("b", 1.0)], [Hit("b", 0.7), Hit("c", 0.6)])[0].id
    'b'
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            scores[hit.id] = scores.get(hit.id, 0.0) + 1 / (_K + rank)
    return [Hit(id, score) for id, score in sorted(scores.items(), key=lambda s: (-s[1], s[0]))]
