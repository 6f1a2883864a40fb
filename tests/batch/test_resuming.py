from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sagents_nb as sa
from sagents_nb.batch import Answer
from sagents_nb.batch.run import stopped_answers
from sagents_nb.runtime.thread import runtime
from tests.batch.models import Replying, replying
from tests.talking import call, run

pd = pytest.importorskip("pandas")

ROWS = [str(n) for n in range(100)]


@pytest.fixture(autouse=True)
def nothing_was_stopped_before() -> None:
    stopped_answers.clear()


def mapped(agent: sa.Agent, inputs: Any = ROWS, **options: Any) -> Any:
    return agent.map(inputs, progress=False, **options)


STUDY = """
import os, signal, sys
import sagents_nb as sa
from tests.batch.models import replying

calls = 0
def reply(text):
    global calls
    calls += 1
    if calls > int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return text
rows = [str(n) for n in range(100)]
frame = replying(reply).map(rows, cache=sys.argv[1], concurrency=1, progress=False)
print(calls, frame.kept.sum(), (frame.status == "completed").sum(), list(frame.text) == rows)
"""


def test_killed_at_row_60_of_100_and_run_again_it_runs_40(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.jsonl")
    root = str(Path(__file__).parents[2])

    def study(limit: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", STUDY, path, str(limit)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": root},
        )

    assert study(60).returncode == -signal.SIGKILL
    again = study(1000)
    assert again.stdout.split() == ["40", "60", "100", "True"], again.stderr


def stopping(after: int) -> sa.Agent:
    """An agent whose process is interrupted, as by Ctrl-C, when it was asked so often.

    Who is asked from then on waits.
    """

    class Stopping(Replying):
        async def stream(self, request: sa.ModelRequest) -> Any:
            if len(self.asked) == after:
                os.kill(os.getpid(), signal.SIGINT)
            if len(self.asked) >= after:
                self.asked.append("never")
                await asyncio.Event().wait()
            async for item in super().stream(request):
                yield item

    Stopping.__qualname__ = Replying.__qualname__  # the rows are the same ones for another
    return sa.Agent(Stopping(), replace_default_middleware=True)


def test_what_an_interrupted_map_had_finished_is_not_run_again() -> None:
    with pytest.raises(KeyboardInterrupt) as stopped:
        mapped(stopping(30), concurrency=5)
    (note,) = stopped.value.__notes__
    done = int(note.split()[0])
    assert done == 30
    assert "of 100 rows are done and kept" in note
    again = replying()
    frame = mapped(again)
    assert list(frame.text) == ROWS
    assert frame.kept.sum() == done
    assert len(again.model.asked) == 100 - done  # type: ignore[attr-defined]
    anew = replying()
    assert not mapped(anew).kept.any()  # a map that has ended is no cache


def test_an_interrupt_stops_the_map_and_cancels_the_running_rows() -> None:
    class Stuck(Replying):
        async def stream(self, request: sa.ModelRequest) -> Any:
            if len(self.asked) == 4:
                os.kill(os.getpid(), signal.SIGINT)
            async for item in super().stream(request):
                yield item

    model = Stuck(delay=3600.0)
    with pytest.raises(KeyboardInterrupt):
        mapped(sa.Agent(model, replace_default_middleware=True), concurrency=5)
    assert model.cancelled >= 4


def test_a_cancelled_amap_keeps_what_it_had_finished_too() -> None:
    slow = replying(delay=0.005)

    async def stopped() -> str:
        task = asyncio.create_task(slow.amap(ROWS, concurrency=2, progress=False))
        while len(slow.model.asked) < 20:  # type: ignore[attr-defined]
            await asyncio.sleep(0.005)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return error.__notes__[0]
        raise AssertionError

    done = int(run(stopped()).split()[0])
    assert done >= 18
    again = replying()
    assert len(run(again.amap(ROWS, progress=False))) == 100
    assert len(again.model.asked) == 100 - done  # type: ignore[attr-defined]


def test_finished_rows_are_found_again_without_model_or_tools(tmp_path: Path) -> None:
    looked: list[str] = []

    def look(at: str) -> str:
        looked.append(at)
        return "seen"

    def reply(text: str) -> Any:
        return sa.Message.assistant("", [call("look", at=text)]) if text else "done"

    first = mapped(replying(reply, tools=[look]), ["a", "b"], cache=tmp_path / "x" / "r.jsonl")
    second = replying(reply, tools=[look])
    frame = mapped(second, ["b", "c", "a"], cache=tmp_path / "x" / "r.jsonl")
    assert sorted(looked) == ["a", "b", "c"]
    assert list(frame.kept) == [True, False, True]
    assert list(frame.text) == ["done"] * 3
    same = ["usage", "duration", "time", "tool_calls", "input_tokens"]
    same = [name for name in same if name in frame]
    assert frame.loc[2, same].equals(first.loc[0, same].rename(2))


def test_rows_without_an_answer_are_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    failing = replying(lambda text: sa.ModelError("no", kind="invalid_request"))
    assert set(mapped(failing, ["a"], cache=path).status) == {"failed"}
    assert set(mapped(replying(), ["a"], cache=path).status) == {"completed"}


def test_equal_prompts_are_rows_of_their_own(tmp_path: Path) -> None:
    numbers = iter(range(100))

    def reply(text: str) -> str:
        return str(next(numbers))

    first = mapped(replying(reply), ["a", "a", "a"], cache=tmp_path / "r", concurrency=1)
    assert list(first.text) == ["0", "1", "2"]
    longer = mapped(replying(reply), ["a"] * 4, cache=tmp_path / "r", concurrency=1)
    assert list(longer.text) == ["0", "1", "2", "3"]


def look(at: str) -> str:
    return at


@pytest.mark.parametrize(
    "changes",
    [
        {"system_prompt": "Be brief."},
        {"model": Replying(name="another")},
        {"options": {"temperature": 1.0}},
        {"tools": [look]},
        {"max_runs": 3},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_agent_runs_its_own_rows(changes: dict[str, Any], tmp_path: Path) -> None:
    agent = replying()
    mapped(agent, ["a"], cache=tmp_path / "r")
    assert mapped(agent.with_(agent_id="other", name="Other"), ["a"], cache=tmp_path / "r").kept[0]
    assert not mapped(agent.with_(**changes), ["a"], cache=tmp_path / "r").kept[0]


def test_another_type_of_output_is_another_answer(tmp_path: Path) -> None:
    def reply(text: str) -> Any:
        return sa.Message.assistant("", [sa.ToolCall("c", "submit", {"value": 1})])

    agent = replying(reply)
    assert not mapped(agent, ["a"], output=int, cache=tmp_path / "r").kept[0]
    assert mapped(agent, ["a"], output=int, cache=tmp_path / "r").value[0] == 1
    assert not mapped(agent, ["a"], output=float, cache=tmp_path / "r").kept[0]


def test_a_cut_line_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    mapped(replying(), ["a", "b"], cache=path)
    lines = path.read_bytes().splitlines(keepends=True)
    foreign = b'\x80\x04\x95cos\nsystem\n{"key": 1}\n[]\n"x"\n\xff\n'
    path.write_bytes(lines[0] + foreign + lines[1][:40])
    frame = mapped(replying(), ["a", "b"], cache=path)
    assert sorted(frame.kept) == [False, True]
    assert mapped(replying(), ["a", "b"], cache=path).kept.all()


@pytest.mark.parametrize(
    "content",
    [
        b"city,mm\nOslo,84\n",
        b"a note without an end",
        b'{"key": "a", "value": 1}\n',
        b'{"key":"%s","value":1}\n' % (b"a" * 64),
        b'{\n  "key": 1\n}\n',
        b"\n\n\x89PNG\r\n\x1a\n",
        b'[1]\n{"key":"a","status":"completed"}\n',
    ],
)
def test_a_file_that_is_no_cache_is_refused_and_stays_as_it_is(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(content)
    agent = replying()
    with pytest.raises(sa.ConfigurationError, match=r"results\.csv' is no cache.*name another"):
        mapped(agent, ["a"], cache=path)
    assert path.read_bytes() == content
    assert agent.model.asked == []  # type: ignore[attr-defined]


def test_a_file_with_nothing_in_it_becomes_a_cache(tmp_path: Path) -> None:
    for content in (b"", b"\n"):
        path = tmp_path / "rows.jsonl"
        path.write_bytes(content)
        mapped(replying(), ["a"], cache=path)
        assert mapped(replying(), ["a"], cache=path).kept[0]


@pytest.mark.parametrize("length", [20, 72, 75, 200])
def test_a_cache_whose_first_row_was_cut_is_still_one(length: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    mapped(replying(), ["a"], cache=path)
    path.write_bytes(path.read_bytes()[:length])
    assert not mapped(replying(), ["a"], cache=path).kept[0]
    assert mapped(replying(), ["a"], cache=path).kept[0]


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    mapped(replying(), ["a"], cache=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_does_not_end_the_map(tmp_path: Path, caplog: Any) -> None:
    (tmp_path / "file").write_text("")
    frame = mapped(replying(), ["a", "b"], cache=tmp_path / "new" / "r")
    assert set(frame.status) == {"completed"}
    (tmp_path / "dir" / "rows.jsonl").mkdir(parents=True)
    with pytest.raises(sa.ConfigurationError, match="name another file"):
        mapped(replying(), ["a"], cache=tmp_path / "dir")
    with pytest.raises(sa.ConfigurationError, match="path or a ResponseCache"):
        mapped(replying(), ["a"], cache=17)


def test_a_response_cache_has_a_place_for_the_rows(tmp_path: Path) -> None:
    pytest.importorskip("diskcache")
    cache = sa.ResponseCache(tmp_path / "cache")
    mapped(replying(), ["a"], cache=cache)
    assert mapped(replying(), ["a"], cache=cache).kept[0]
    assert mapped(replying(), ["a"], cache=tmp_path / "cache").kept[0]


def test_a_budget_that_is_raised_goes_on_where_it_ended(tmp_path: Path) -> None:
    agent, path = replying(), tmp_path / "r"
    first = mapped(agent, cache=path, budget=sa.Budget(model_calls=30), concurrency=1)
    assert (first.status == "not_run").sum() == 70
    second = mapped(agent, cache=path, budget=sa.Budget(model_calls=70), concurrency=1)
    assert set(second.status) == {"completed"}
    assert len(agent.model.asked) == 100  # type: ignore[attr-defined]


class Disk:
    """What happens to the disk during a test: ``synced`` has the size of the file at each sync."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[int] = []
        self.threads: set[int] = set()
        real = os.fdatasync

        def fdatasync(file: int) -> None:
            real(file)
            self.synced.append(os.fstat(file).st_size)
            self.threads.add(threading.get_ident())

        monkeypatch.setattr(os, "fdatasync", fdatasync)


needs_fdatasync = pytest.mark.skipif(not hasattr(os, "fdatasync"), reason="it is called otherwise")


@needs_fdatasync
def test_rows_that_end_together_are_synced_together_away_from_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class InStep(Replying):
        """Answers when fifty have been asked."""

        async def stream(self, request: sa.ModelRequest) -> AsyncIterator[Any]:
            self.asked.append(request.messages[-1].text)
            mine = self.step
            if len(self.asked) % 50 == 0:
                self.step = asyncio.Event()
                mine.set()
            await mine.wait()
            yield sa.Message.assistant("done")

        step = asyncio.Event()

    disk = Disk(monkeypatch)
    agent = sa.Agent(InStep(), replace_default_middleware=True)
    frame = mapped(agent, cache=tmp_path / "r", concurrency=50)
    assert set(frame.status) == {"completed"}
    assert len(frame) == 100
    assert 1 <= len(disk.synced) <= 4
    assert disk.synced[-1] == (tmp_path / "r").stat().st_size  # nothing is written after it
    assert runtime.call(threading.get_ident) not in disk.threads


@needs_fdatasync
def test_a_row_is_on_the_disk_before_the_next_one_in_its_place_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    before: list[int] = []

    def reply(text: str) -> str:
        before.append(len(disk.synced))
        return text

    mapped(replying(reply), ["a", "b", "c"], cache=tmp_path / "r", concurrency=1)
    assert before == [0, 1, 2]
    assert len(disk.synced) == 3


@needs_fdatasync
def test_what_another_machine_answers_is_synced_together_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere:
        async def run(self, rows: Any, work: Any) -> AsyncIterator[Answer]:
            for row in rows:
                yield Answer(row.key, "completed", "there")

    disk = Disk(monkeypatch)
    frame = mapped(replying(), cache=tmp_path / "r", engine=Elsewhere())
    assert set(frame.status) == {"completed"}
    assert len(disk.synced) <= 2
    assert len((tmp_path / "r").read_bytes().splitlines()) == len(frame)


@needs_fdatasync
def test_a_row_that_waits_for_the_disk_when_the_map_is_stopped_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = threading.Event()
    goes_on = threading.Event()
    real = os.fdatasync

    def fdatasync(file: int) -> None:
        syncs.set()
        goes_on.wait(30)
        real(file)

    monkeypatch.setattr(os, "fdatasync", fdatasync)

    async def stopped() -> str:
        task = asyncio.create_task(replying().amap(["a"], cache=tmp_path / "r", progress=False))
        await asyncio.to_thread(syncs.wait, 30)
        task.cancel()
        asyncio.get_running_loop().call_later(0.01, goes_on.set)
        try:
            await task
        except asyncio.CancelledError as error:
            return error.__notes__[0]
        raise AssertionError

    assert run(stopped()).startswith("1 of 1 rows are done and kept")


FULL = """
import os, resource, signal, sys
import sagents_nb as sa
from tests.batch.models import replying

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = sys.argv[1]
def reply(text):
    if text in sys.argv[2].split(","):
        room = os.path.getsize(path) + int(sys.argv[3])
    else:
        room = resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    return text * 300
frame = replying(reply).map(list("abcdef"), cache=path, concurrency=1, progress=False)
print((frame.status == "completed").sum())
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
frame = replying(lambda text: text * 300).map(list("abcdef"), cache=path, progress=False)
print("".join(row for row, kept in zip("abcdef", frame.kept) if kept))
"""


@pytest.mark.parametrize(
    ("full", "room", "kept"), [("c", 100, "abdef"), ("cd", 100, "abef"), ("c", 0, "abdef")]
)
def test_a_row_that_fits_only_in_part_is_told_and_takes_no_other_with_it(
    tmp_path: Path, full: str, room: int, kept: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "rows.jsonl"), ",".join(full), str(room)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.split() == ["6", kept], done.stderr
    assert done.stderr.count("Rows are not kept in") == 1


TOGETHER = """
import resource, signal, sys
import sagents_nb as sa
from sagents_nb.batch import Answer
from tests.batch.models import replying

class Elsewhere:
    async def run(self, rows, work):
        for row in rows:
            yield Answer(row.key, "completed", "there " * 50)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
agent = replying()
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
options = {"cache": sys.argv[1], "progress": False}
print((agent.map(list("abcdef"), engine=Elsewhere(), **options).status == "completed").sum())
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
frame = agent.map(list("abcdef"), **options)
print("".join(row for row, kept in zip("abcdef", frame.kept) if kept))
print(agent.map(list("abcdef"), **options).kept.all())
"""


def test_of_rows_that_end_together_those_that_fit_are_kept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER, str(tmp_path / "rows.jsonl")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.split() == ["6", "ab", "True"], done.stderr
    assert done.stderr.count("Rows are not kept in") == 1


def test_a_cache_that_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    agent = sa.Agent(sa.ScriptedModel(["a"]))
    for place in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(sa.ConfigurationError, match="is no plain file"):
            agent.map(["q"], cache=place, progress=False)
    with pytest.raises(sa.ConfigurationError, match="not ''"):
        agent.map(["q"], cache="", progress=False)


def priced(*answers: Any) -> sa.Agent:
    """An agent whose answers cost a dollar each, of which a None is none that fits."""
    cost = sa.Usage(10, 5, cost_usd=1.0)
    turns = [
        sa.Message.assistant("no") if a is None else sa.Message.assistant(tool_calls=[a])
        for a in answers
    ]
    paid = [msgspec.structs.replace(turn, usage=cost) for turn in turns]
    return sa.Agent(sa.ScriptedModel(paid), defaults=False, max_runs=1)


ANSWER = call("submit", value=7)


@pytest.mark.parametrize("is_cached", [True, False])
def test_what_a_failed_row_has_cost_is_in_its_row_when_it_is_run_again(
    is_cached: bool, tmp_path: Path
) -> None:
    cache = tmp_path / "rows.jsonl" if is_cached else None

    def mapped_with(agent: sa.Agent, **options: Any) -> Any:
        return agent.map(
            ["a", "b"], output_type=int, cache=cache, concurrency=1, progress=False, **options
        )

    if is_cached:
        frame = mapped_with(priced(ANSWER, None))
        assert frame.status.tolist() == ["completed", "failed"]
        mapped_with(priced(None))
    else:
        for answers in ((ANSWER, None), (None,)):
            with pytest.raises(KeyboardInterrupt):
                mapped_with(priced(*answers), engine=Interrupting(len(answers)))
    if is_cached:
        frame = mapped_with(priced(), budget=sa.Budget(model_calls=0))
        assert frame.status.tolist() == ["completed", "not_run"]
        assert frame.cost_usd.tolist() == [1.0, 2.0]
        assert frame.text.isna().tolist() == [False, True]
    day = sa.Budget(cost_usd=9.0).shared()
    frame = mapped_with(priced(ANSWER), budget=day)
    assert frame.status.tolist() == ["completed"] * 2
    assert frame.kept.tolist() == [True, False]
    assert frame.cost_usd.tolist() == [1.0, 3.0]
    assert frame.model_calls.tolist() == [1, 3]
    assert (day.meter.model_calls, day.meter.cost_usd) == (1, 1.0)  # of this map alone


class Interrupting:
    """Runs so many rows, and is then interrupted."""

    def __init__(self, after: int) -> None:
        self.after = after

    async def run(self, rows: Any, work: Any) -> AsyncIterator[Answer]:
        for row, _ in zip(rows, range(self.after), strict=False):
            yield await work(row)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
