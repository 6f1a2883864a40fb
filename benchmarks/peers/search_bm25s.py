"""bm25s with PyStemmer, as its README has it: the ten best texts of each question, by number.

It reads {"texts": […], "questions": […]} as JSON, and writes {"found": [[…], …], "seconds": …}: of
processor time for all questions.
"""

from __future__ import annotations

import json
import sys
import time

import bm25s
import Stemmer


def main() -> None:
    """Index, and answer."""
    given = json.load(sys.stdin)
    stemmer = Stemmer.Stemmer("english")
    options = {"stopwords": "en", "stemmer": stemmer, "show_progress": False}
    index = bm25s.BM25()
    index.index(bm25s.tokenize(given["texts"], **options), show_progress=False)
    began = time.process_time()
    found = []
    for question in given["questions"]:
        tokens = bm25s.tokenize(question, **options)
        numbers, scores = index.retrieve(tokens, k=10, show_progress=False)
        best = zip(numbers[0].tolist(), scores[0].tolist(), strict=True)
        found.append([number for number, score in best if score > 0])
    json.dump({"found": found, "seconds": time.process_time() - began}, sys.stdout)


if __name__ == "__main__":
    main()
