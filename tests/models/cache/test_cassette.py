"""A cassette is a file that people review: it reads well, and changes only where something did."""

from __future__ import annotations

import fcntl
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.models import ModelRequest
from sagents_nb.models.cache import Cassette, Recording, asked
from sagents_nb.models.cache import cassette as cassette_module
from sagents_nb.models.cache.recording import recording_of
from tests.models.cache.asking import key, recording, say, turns
from tests.talking import PATIENCE

SHOWN = """\
{
 "version": 1,
 "systems": {
  "SYSTEM": {
   "lines": [
    "Be brief.",
    "Be kind."
   ]
  }
 },
 "tools": {},
 "recordings": [
  {
   "key": "FIRST",
   "model": {
    "kind": "ScriptedModel",
    "name": "scripted"
   },
   "system": "SYSTEM",
   "messages": [
    {
     "role": "user",
     "parts": [
      {
       "type": "text",
       "text": "hi"
      }
     ]
    }
   ],
   "answer": {
    "role": "assistant",
    "parts": [
     {
      "type": "text",
      "text": "Hello!"
     }
    ],
    "stop_reason": "end_turn"
   },
   "shape": [
    "t3*2"
   ]
  },
  {
   "key": "SECOND",
   "model": {
    "kind": "ScriptedModel",
    "name": "scripted"
   },
   "system": "SYSTEM",
   "continues": "FIRST",
   "messages": [
    {
     "role": "user",
     "parts": [
      {
       "type": "text",
       "text": "And?"
      }
     ]
    }
   ],
   "answer": {
    "role": "assistant",
    "parts": [
     {
      "type": "text",
      "text": {
       "lines": [
        "One",
        "two"
       ]
      }
     }
    ],
    "stop_reason": "end_turn"
   }
  }
 ]
}
"""


def test_it_reads_like_the_conversation(tmp_path: Path) -> None:
    model = sa.ScriptedModel([])
    system = "Be brief.\nBe kind."
    first = asked(model, ModelRequest([sa.Message.user("hi")], system))
    hello = sa.Message.assistant("Hello!")
    history = [sa.Message.user("hi"), hello, sa.Message.user("And?")]
    second = asked(model, ModelRequest(history, system))
    cassette = Cassette(tmp_path / "x.json")
    cassette.put(recording_of(first, hello, "t3*2"))
    cassette.put(recording_of(second, sa.Message.assistant("One\ntwo"), ""))
    cassette.save()
    text = cassette.path.read_text()
    (name,) = json.loads(text)["systems"]
    text = text.replace(first.key, "FIRST").replace(second.key, "SECOND").replace(name, "SYSTEM")
    assert text == SHOWN


def filled(path: Path, answers: dict[str, str]) -> Cassette:
    cassette = Cassette(path)
    for question, answer in answers.items():
        cassette.put(recording(question, answer))
    cassette.save()
    return cassette


def test_what_was_written_is_read_and_the_bytes_stay(tmp_path: Path) -> None:
    cassette = filled(tmp_path / "x.json", {"a": "A", "b": "B\nB"})
    before = cassette.path.read_bytes()
    again = Cassette(cassette.path)
    assert [again.get(key(q).key) for q in "ab"] == [recording("a", "A"), recording("b", "B\nB")]
    again.save()
    assert cassette.path.read_bytes() == before


def test_the_same_words_keep_their_bytes(tmp_path: Path) -> None:
    cassette = filled(tmp_path / "x.json", {"a": "A", "b": "B"})
    before = cassette.path.read_bytes()
    other = sa.Message.assistant("A", usage=sa.Usage(7, 7), response_id="another")
    cassette.put(recording_of(key("a"), other, "t1@300"))
    assert cassette.path.read_bytes() == before
    cassette.put(recording("a", "A2"))
    cassette.save()
    assert cassette.path.read_bytes() != before
    assert [r.message.text for r in cassette.recordings()] == ["A2", "B"]


def test_a_full_recording_drops_what_was_not_asked_again(tmp_path: Path) -> None:
    old = filled(tmp_path / "old.json", {"a": "A", "b": "B", "c": "C"})
    fresh = filled(tmp_path / "new.json", {"d": "D", "c": "C2", "a": "A"})
    assert fresh.keep_of(old) == (1, 1, 1)
    assert [r.message.text for r in Cassette(fresh.path).recordings()] == ["A", "C2", "D"]
    same = filled(tmp_path / "same.json", {"c": "C", "b": "B", "a": "A"})
    assert same.keep_of(old) == (0, 0, 0)
    assert same.path.read_bytes() == old.path.read_bytes()


def test_a_header_is_kept(tmp_path: Path) -> None:
    cassette = filled(tmp_path / "x.json", {"a": "A"})
    cassette.header["default_model"] = "anthropic:claude"
    cassette.save()
    again = Cassette(cassette.path)
    again.put(recording("b"))
    again.save()
    assert json.loads(cassette.path.read_text())["default_model"] == "anthropic:claude"


def test_there_is_one_cassette_for_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Cassette.at("x.json") is Cassette.at(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_threads_that_record_at_once_lose_nothing(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "x.json")
    together = threading.Barrier(8)

    def record(name: int) -> None:
        together.wait()
        for i in range(5):
            cassette.put(recording(f"{name}-{i}"))

    threads = [threading.Thread(target=record, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cassette.save()
    assert len(Cassette(cassette.path)) == 40
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def _record_one(path: str) -> None:
    Cassette(path).put(recording("from a child"))


def test_what_another_process_recorded_is_seen_and_kept(tmp_path: Path) -> None:
    cassette = filled(tmp_path / "x.json", {"a": "A"})
    child = multiprocessing.get_context("spawn").Process(
        target=_record_one, args=(str(cassette.path),)
    )
    child.start()
    child.join()
    assert cassette.get(key("from a child").key) is not None
    cassette.put(recording("b"))
    cassette.save()
    assert len(Cassette(cassette.path)) == 3


def test_processes_that_record_at_once_lose_nothing(tmp_path: Path) -> None:
    script = """
        import sys, time
        from pathlib import Path
        from sagents_nb.models.cache import Cassette
        from tests.models.cache.asking import recording
        cassette, name = Cassette(sys.argv[1]), sys.argv[2]
        Path(sys.argv[1]).with_name(name).touch()
        while len(list(Path(sys.argv[1]).parent.glob("ready*"))) < 4:
            time.sleep(0.001)
        for number in range(25):
            cassette.put(recording(f"{name}-{number}"))
    """
    path = tmp_path / "x.json"
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    workers = [subprocess.Popen([*command, f"ready{n}"], env=env) for n in range(4)]
    assert [worker.wait(PATIENCE) for worker in workers] == [0] * 4
    wanted = {key(f"ready{n}-{number}").key for n in range(4) for number in range(25)}
    assert {r.key for r in Cassette(path).recordings()} == wanted


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder is locked, as by a process that writes a cassette in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def test_a_process_that_was_stopped_while_it_wrote_holds_nobody_up_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cassette_module, "PATIENCE", 0.01)
    with held(tmp_path):
        Cassette(tmp_path / "x.json").put(recording("a"))
    assert len(Cassette(tmp_path / "x.json")) == 1


# What is written for an answer


def test_each_answer_of_a_conversation_writes_as_much_as_the_first(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "x.json")
    sizes: list[int] = []
    places: set[int] = set()
    for one in turns(60):
        before = cassette.path.read_bytes() if sizes else b""
        cassette.put(one)
        assert cassette.path.read_bytes().startswith(before[: -len(END)])
        places.add(cassette.path.stat().st_ino)
        sizes.append(cassette.path.stat().st_size)
    grown = [after - before for before, after in itertools.pairwise(sizes)]
    assert len(set(grown)) == 1
    assert len(places) == 1  # it was written in, never replaced


def test_what_was_added_reads_as_what_is_written_as_a_whole(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "x.json")
    found = list(turns(5))
    for one in found:
        cassette.put(one)
    added = cassette.path.read_bytes()
    assert added == cassette_module.to_text({}, found)
    cassette.save()
    assert cassette.path.read_bytes() == added


def test_requests_come_back_whole(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "x.json")
    found = list(turns(20))
    for one in found:
        cassette.put(one)
    for place in (cassette, Cassette(cassette.path)):
        wanted = [(r.key, r.request) for r in found]
        assert [(r.key, r.request) for r in place.recordings()] == wanted


def test_a_file_that_nobody_writes_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list(turns(20))
    (tmp_path / "x.json").write_bytes(cassette_module.to_text({}, found))
    reads: list[Path] = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(path) or read(path))
    cassette = Cassette(tmp_path / "x.json")
    assert [cassette.get(recording.key) for recording in found] == found
    assert len(reads) == 1


def test_another_system_prompt_is_added_with_the_answer_and_put_in_order_later(
    tmp_path: Path,
) -> None:
    cassette = Cassette(tmp_path / "x.json")
    found = [*turns(2), *turns(2, "Be long.\nBe kind.")]
    for one in found:
        cassette.put(one)
    assert len(json.loads(cassette.path.read_text())["systems"]) == 1
    again = Cassette(cassette.path)
    assert [r.request for r in again.recordings()] == [r.request for r in found]
    again.save()
    assert again.path.read_bytes() == cassette_module.to_text({}, found)


def test_answers_recorded_anew_take_the_place_of_the_old_in_a_file_that_stays_small(
    tmp_path: Path,
) -> None:
    cassette = Cassette(tmp_path / "x.json")
    sizes = []
    for times in range(10, 40):
        for question in "abc":
            cassette.put(recording(question, f"{question}{times}"))
        sizes.append(cassette.path.stat().st_size)
        answers = [r.message.text for r in Cassette(cassette.path).recordings()]
        assert answers == [f"{question}{times}" for question in "abc"]
    assert max(sizes) < 4 * sizes[0]
    cassette.save()
    assert cassette.path.stat().st_size == sizes[0]


def test_what_goes_on_from_an_answer_that_was_recorded_anew_is_still_whole(tmp_path: Path) -> None:
    first, second, third = turns(3)
    cassette = Cassette(tmp_path / "x.json")
    other = Recording(first.key, first.request, sa.Message.assistant("Another."), "")
    for one in (first, other, second, third):
        cassette.put(one)
    for place in (cassette, Cassette(cassette.path)):
        assert [r.request for r in place.recordings()] == [
            r.request for r in (first, second, third)
        ]
        found = place.get(first.key)
        assert found is not None
        assert found.message.text == "Another."


def test_a_file_that_somebody_formatted_is_read_and_written_in_order(tmp_path: Path) -> None:
    found = list(turns(3))
    path = tmp_path / "x.json"
    data = json.loads(cassette_module.to_text({"mine": 1}, found[:2]))
    for text in (json.dumps(data), json.dumps(data, indent=4), json.dumps(data, sort_keys=True)):
        path.write_text(text)
        Cassette(path).put(found[2])
        assert path.read_bytes() == cassette_module.to_text({"mine": 1}, found)


def test_what_was_added_is_put_in_order_when_the_process_ends(tmp_path: Path) -> None:
    script = f"""
        import sagents_nb as sa
        from sagents_nb.models import ModelRequest
        from tests.models.cache.asking import answered, request
        model = sa.RecordedModel(sa.ScriptedModel(["x"] * 9), {str(tmp_path / "x.json")!r})
        for i in range(9):
            answered(model, request(str(i), system=f"Prompt {{i}}"))
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=True,
    )
    text = (tmp_path / "x.json").read_bytes()
    assert len(json.loads(text)["systems"]) == 9
    assert cassette_module.to_text(*_values(cassette_module.from_text(text))) == text


# Kills and links

END = b"\n ]\n}\n"


def test_a_recording_that_is_cut_anywhere_costs_no_other(tmp_path: Path) -> None:
    first, second, third = turns(3)
    path = tmp_path / "x.json"
    cassette = Cassette(path)
    for one in (first, second):
        cassette.put(one)
    whole = path.read_bytes()
    cassette.put(third)
    added = path.read_bytes()
    for cut in range(len(whole) - len(END), len(added) - 1):  # but for the last line end
        path.write_bytes(added[:cut])
        again = Cassette(path)
        keys = [r.key for r in again.recordings()]
        assert keys[:2] == [first.key, second.key]
        again.put(third)
        assert path.read_bytes() == added


def test_a_kill_at_any_moment_loses_no_answer_and_leaves_no_other_file(tmp_path: Path) -> None:
    script = """
        import sys
        from sagents_nb.models.cache import Cassette
        from tests.models.cache.asking import turns
        cassette = Cassette(sys.argv[1])
        for time in range(1_000):
            for recording in turns(4, f"{sys.argv[2]} {time} " + "long " * 5_000):
                cassette.put(recording)
                print(recording.key, flush=True)
            if time % 5 == 0:
                cassette.save()
    """
    path = tmp_path / "x.json"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    told: list[str] = []
    for number in range(6):
        command = [sys.executable, "-c", textwrap.dedent(script), str(path), str(number)]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(10 + 7 * number):
                told.append(process.stdout.readline().strip())
            process.kill()
            told += process.stdout.read().split("\n")[:-1]
        assert set(told) <= {recording.key for recording in Cassette(path).recordings()}
        assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name")
def test_a_file_has_no_name_before_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        seen.append([file.name for file in tmp_path.iterdir()])
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    filled(tmp_path / "x.json", {"a": "A", "b": "B"})
    assert seen == [[], ["x.json"], ["x.json"]]


def test_where_a_file_needs_a_name_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert len(Cassette(filled(tmp_path / "x.json", {"a": "A", "b": "é"}).path)) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_what_is_written_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path / "x.json", {"a": "A"}).path
    read = Path.read_bytes
    mixed: list[bytes] = []

    def interrupted(self: Path) -> bytes:
        """The old end, and after it what another process writes over it."""
        old = read(self)
        if not mixed:
            mixed.append(old)
            Cassette(path).put(recording("b"))
            return old + read(self)[len(old) :]
        return old

    monkeypatch.setattr(Path, "read_bytes", interrupted)
    assert len(Cassette(path)) == 2


def test_a_process_that_was_stopped_while_it_wrote_writes_again_where_another_went_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cassette = filled(tmp_path / "x.json", {"a": "A"})
    other = Cassette(cassette.path)
    monkeypatch.setattr(cassette_module, "PATIENCE", 0.01)
    status = os.fstat
    stopped: list[int] = []

    def slow(descriptor: int) -> os.stat_result:
        stopped.append(descriptor)
        if len(stopped) == 1:  # the file is open, and nothing is written yet
            other.put(recording("b"))
        return status(descriptor)

    monkeypatch.setattr(os, "fstat", slow)
    cassette.put(recording("c"))
    found = {one.key for one in Cassette(cassette.path).recordings()}
    assert found == {key(question).key for question in "abc"}


@pytest.mark.parametrize("indent", [1, 4])
def test_an_answer_that_cannot_be_written_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int
) -> None:
    """Whether it is added, or the file was formatted by somebody and is replaced."""
    path = filled(tmp_path / "x.json", {"a": "A"}).path
    path.write_text(json.dumps(json.loads(path.read_text()), indent=indent) + "\n")
    cassette = Cassette(path)
    before = cassette.path.read_bytes()

    def refuse(descriptor: int) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="full"):
            cassette.put(recording("b"))
    assert cassette.path.read_bytes() == before
    assert cassette.get(key("b").key) is None
    cassette.put(recording("c"))
    assert len(Cassette(cassette.path)) == 2


def test_what_a_killed_recorder_of_an_older_version_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".x.json.123.new").write_text("half")
    filled(tmp_path / "x.json", {"a": "A"})
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_a_link_stays_one_and_the_file_behind_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "x.json"
    link.symlink_to(tmp_path / "there" / "y.json")
    cassette = Cassette(link)
    cassette.put(recording("a"))  # the first, which makes the file
    cassette.put(recording("b"))  # one that is added
    cassette.save()
    assert link.is_symlink()
    assert len(Cassette(tmp_path / "there" / "y.json")) == 2
    assert [file.name for file in (tmp_path / "there").iterdir()] == ["y.json"]


def test_where_it_is_not_known_who_else_writes_the_file_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cassette = filled(tmp_path / "x.json", {"a": "A"})
    monkeypatch.setattr(cassette_module, "PATIENCE", 0.01)
    with open(cassette.path, "r+b") as stopped, held(tmp_path):
        cassette.put(recording("b"))
        stopped.seek(0)
        stopped.write(b"what a process writes that was stopped")
    assert len(Cassette(cassette.path)) == 2


def test_a_conflict_of_a_merge_at_the_end_is_not_passed_over(tmp_path: Path) -> None:
    path = filled(tmp_path / "x.json", {"a": "A"}).path
    text = path.read_text()
    text = text.replace("\n ]\n}\n", "\n<<<<<<< HEAD\n ]\n}\n=======\n ]\n}\n>>>>>>> x\n")
    path.write_text(text)
    with pytest.raises(sa.ConfigurationError, match=r"x\.json is no cassette"):
        Cassette(path)
    assert path.read_text() == text


def test_a_file_that_somebody_removed_is_forgotten(tmp_path: Path) -> None:
    cassette = filled(tmp_path / "x.json", {"a": "A"})
    cassette.path.unlink()
    assert cassette.get(key("a").key) is None
    cassette.put(recording("b"))
    cassette.save()
    assert [r.key for r in Cassette(cassette.path).recordings()] == [key("b").key]


BROKEN = {
    "empty": "",
    "no JSON": "<<<<<<< HEAD",
    "a list": "[]",
    "another version": '{"version": 2}',
    "no recordings": '{"version": 1, "systems": {}, "tools": {}}',
    "half a recording": '{"version": 1, "systems": {}, "tools": {}, "recordings": [{}]}',
    "odd recordings": '{"version": 1, "systems": {}, "tools": {}, "recordings": [7]}',
    "very deep": "[" * 100_000,
    "no text": "\x00\x01",
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_is_no_cassette_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(BROKEN[what])
    with pytest.raises(sa.ConfigurationError, match=r"x\.json is no cassette that can be read"):
        Cassette(path)
    assert path.read_text() == BROKEN[what]


def test_an_answer_is_given_even_if_it_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    model = sa.RecordedModel(sa.ScriptedModel(["Hello!"]), tmp_path / "file" / "x.json")
    assert say(model) == "Hello!"
    assert "is not recorded" in caplog.text


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.just("lines"), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(plain)
def test_lines_are_read_back_as_the_text_they_were(value: Any) -> None:
    assert cassette_module.unlined(cassette_module.lined(value)) == value


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
histories = st.lists(st.sampled_from("abc"), min_size=1, max_size=6)


@given(st.lists(histories, max_size=6), texts, st.dictionaries(texts, plain, max_size=3))
def test_any_recordings_survive_the_file(
    asked_of: list[list[str]], answer: str, arguments: dict[str, Any]
) -> None:
    """Histories that share their beginnings, in any order, as sub-agents and retries make."""
    found: dict[str, Recording] = {}
    call = sa.ToolCall("c", "f", arguments)
    for words in asked_of:
        messages = [
            sa.Message.user(word) if i % 2 == 0 else sa.Message.assistant(answer, [call])
            for i, word in enumerate(words)
        ]
        what = asked(sa.ScriptedModel([]), ModelRequest(messages, answer))
        found[what.key] = recording_of(what, sa.Message.assistant(answer, [call]), "t1 c a3")
    text = cassette_module.to_text({"x": 1}, found.values())
    header, read = cassette_module.from_text(text)
    assert (header, read) == ({"x": 1}, found)
    assert [r.request for r in read.values()] == [r.request for r in found.values()]
    assert cassette_module.to_text(*_values(cassette_module.from_text(text))) == text


def _values(read: tuple[dict[str, Any], dict[str, Recording]]) -> tuple[dict[str, Any], Any]:
    return read[0], read[1].values()
