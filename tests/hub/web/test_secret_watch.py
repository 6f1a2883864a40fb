"""A secret is looked at as long as somebody goes on who showed it, and once for all of them."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from sagents_nb.errors import StoreError
from sagents_nb.hub.web.secret_watch import SecretWatch
from tests.talking import run


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sagents_nb.hub.web.secret_watch.RECHECKED_AFTER", 0.005)


class Questions:
    """What was asked; the answers are these, one after the other."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)

    def __call__(self, digest: str) -> bool:
        self.asked.append(digest)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_all_that_showed_one_secret_are_one_question_and_end_together() -> None:
    questions, ended = Questions(True, True, False), list[int]()

    async def talk() -> None:
        watch, over = SecretWatch(questions), asyncio.Event()
        with contextlib.ExitStack() as stack:

            def end(number: int) -> None:
                ended.append(number)
                if len(ended) == 8:
                    over.set()

            for number in range(8):
                stack.enter_context(watch.watched("d", lambda number=number: end(number)))
            await over.wait()

    run(talk())
    assert sorted(ended) == list(range(8))
    assert questions.asked == ["d"] * 3


def test_a_store_that_cannot_say_it_ends_nothing() -> None:
    questions = Questions(StoreError("It is away."), True, False)

    async def talk() -> None:
        over = asyncio.Event()
        with SecretWatch(questions).watched("d", over.set):
            await over.wait()

    run(talk())
    assert len(questions.asked) == 3


def test_nothing_is_asked_once_nobody_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = Questions(False)

    async def talk() -> None:
        watch, over = SecretWatch(questions), asyncio.Event()
        with watch.watched("gone", lambda: None):
            pass
        with watch.watched("there", over.set):
            await over.wait()

    run(talk())
    assert questions.asked == ["there"]
