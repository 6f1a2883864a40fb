"""A cache answers quickly, and whatever is wrong with it is a miss that is told once."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import diskcache
import msgspec
import pytest

import sagents_nb as sa
from sagents_nb import drives
from sagents_nb.models.cache import Asked, Recording, ResponseCache, disk
from sagents_nb.models.cache.disk import StrictDisk
from sagents_nb.models.cache.nearest import nearest
from sagents_nb.models.cache.recording import MESSAGES, REST, to_row
from sagents_nb.redaction import Secrets
from tests.models.cache.asking import key, recording, request, say, turns

KEY = key("hi").key
NOT_ROOT = not hasattr(os, "geteuid") or os.geteuid() != 0


@pytest.fixture
def cache(tmp_path: Path) -> ResponseCache:
    return ResponseCache(tmp_path / "cache")


def test_what_was_stored_is_found_by_another_object(cache: ResponseCache) -> None:
    assert cache.get(KEY) is None
    cache.put(recording())
    assert cache.get(KEY) == ResponseCache(cache.path).get(KEY) == recording()
    assert cache.get("0" * 64) is None


def test_a_hit_shares_nothing(cache: ResponseCache) -> None:
    call = sa.ToolCall("c1", "f", {"list": [1, 2]})
    model = sa.RecordedModel(sa.ScriptedModel([call]), cache)
    for _ in range(100):
        *_, message = _items(model)
        message.tool_calls[0].arguments["list"].append(3)
        message.metadata["mine"] = True
        *_, again = _items(model)
        assert again.tool_calls[0].arguments == {"list": [1, 2]}
        assert again.metadata == {"replayed": True}


def _items(model: Any) -> list[Any]:
    from tests.models.cache.asking import answered

    deltas, message = answered(model, request())
    return [*deltas, message]


def test_stats_and_clear(cache: ResponseCache) -> None:
    cache.put(recording("one"))
    cache.put(recording("two"))
    cache.get(key("one").key)
    cache.get(KEY)
    stats = cache.stats()
    assert stats.pop("bytes") > 0
    assert stats == {
        "hits": 1,
        "misses": 1,
        "stored": 2,
        "failures": 0,
        "entries": 2,
        "problem": "",
    }
    assert cache.clear() == 2
    assert cache.stats()["entries"] == 0
    assert cache.get(key("one").key) is None


def test_the_oldest_go_when_it_is_full(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "c", size_limit=400_000)
    for i in range(60):
        cache.put(recording(f"question {i}", "long " * 4_000))
    assert cache.get(key("question 59").key) is not None
    assert cache.get(key("question 0").key) is None
    assert cache.stats()["bytes"] < 600_000


@pytest.mark.parametrize("options", [{"size_limit": 0}, {"expire": 0}, {"expire": -1}])
def test_limits_are_positive(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(sa.ConfigurationError, match=r"is a .*number"):
        ResponseCache(tmp_path / "c", **options)


# What requests have in common


def rows(cache: ResponseCache) -> Any:
    """What is in its database."""
    return diskcache.Cache(str(cache.path), disk=StrictDisk)


def test_a_conversation_of_200_turns_takes_the_space_of_its_messages(cache: ResponseCache) -> None:
    for one in turns(200, words=125):  # a kilobyte a turn
        cache.put(one)
    assert sum(file.stat().st_size for file in cache.path.iterdir()) < 2_000_000
    assert cache.stats()["entries"] == 200


def test_requests_come_back_whole_whatever_they_share(cache: ResponseCache) -> None:
    found = [*turns(30, words=20), *turns(30, "Be long.", words=20), *turns(9, words=30)]
    for one in found:
        cache.put(one)
    wanted = [(one.key, one.request) for one in reversed(found)]
    again = ResponseCache(cache.path)
    assert [(one.key, one.request) for one in again.recordings()] == wanted
    assert cache.clear() == len(found)


def test_a_request_with_a_last_message_of_its_own_shares_what_is_before(
    cache: ResponseCache,
) -> None:
    """As where each turn is asked with a reminder that is not kept."""
    *_, last = turns(60, words=20)
    before = last.request
    sizes = []
    for number in range(100, 110):
        text = bytes(before).replace(b"Question 159", b"Question %d" % number)
        what = msgspec.Raw(text)
        cache.put(Recording(hashlib.sha256(text).hexdigest(), what, last.message, ""))
        sizes.append(sum(len(value) for value in (rows(cache)[name] for name in rows(cache))))
    assert sizes[-1] - sizes[0] < len(before)


def test_a_row_that_holds_its_request_is_read(cache: ResponseCache) -> None:
    """As each one did before they shared."""
    found = list(turns(20, words=20))
    cache.put(found[0])
    for one in found:
        rows(cache)[one.key] = to_row(one)
    for one in found:
        hit = cache.get(one.key)
        assert hit is not None
        assert (hit, hit.request) == (one, one.request)
    assert len(list(cache.recordings())) == 20


def test_a_hit_reads_one_row(cache: ResponseCache, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in turns(20, words=20):
        cache.put(one)
    read: list[Any] = []
    fetch = StrictDisk.fetch
    monkeypatch.setattr(StrictDisk, "fetch", lambda *args: read.append(args) or fetch(*args))
    hit = cache.get(one.key)
    assert len(read) == 1
    assert hit is not None
    assert hit.request == one.request
    assert len(read) > 20


@pytest.mark.parametrize("shared", [MESSAGES, REST])
def test_without_what_it_shares_an_answer_is_found_and_its_request_is_not(
    cache: ResponseCache, shared: str
) -> None:
    *_, before, last = turns(20, words=20)
    cache.put(before)
    cache.put(last)
    for name in list(rows(cache)):
        if name.startswith(shared):
            del rows(cache)[name]
    hit = cache.get(last.key)
    assert hit == last
    with pytest.raises(LookupError, match="no longer in its cache"):
        assert hit.request
    assert list(cache.recordings()) == []
    cache.put(last)
    assert [one.request for one in cache.recordings()][:1] == [last.request]


def test_shared_rows_that_go_in_a_circle_are_none(cache: ResponseCache) -> None:
    *_, last = turns(20, words=20)
    cache.put(last)
    for name in list(rows(cache)):
        if name.startswith(MESSAGES):
            text = json.dumps({"before": name.removeprefix(MESSAGES), "messages": [{}]})
            rows(cache)[name] = text
    assert list(cache.recordings()) == []


def test_a_miss_late_in_a_long_conversation_is_explained(cache: ResponseCache) -> None:
    *_, before, last = turns(40, words=20)
    for one in (before, last):
        cache.put(one)
    text = bytes(last.request).replace(b"Question 130", b"Question 131")
    near = nearest(Asked("", text, Secrets()), cache.recordings())
    assert near is not None
    assert near.recording.key == last.key
    assert near.difference.path == "messages[60].parts[0].text"


# The place


def test_the_directory_is_the_users_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        cache = ResponseCache(tmp_path / "a" / "b")
        cache.put(recording())
    finally:
        os.umask(previous)
    assert stat.S_IMODE(cache.path.stat().st_mode) == 0o700


def test_an_empty_directory_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir(mode=0o755)
    ResponseCache(tmp_path / "c")
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777])
def test_a_directory_that_others_can_enter_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "cache.db").touch()
    folder.chmod(mode)
    with pytest.raises(sa.ConfigurationError, match=r"open to other users.*chmod 700"):
        ResponseCache(folder)


@pytest.mark.skipif(NOT_ROOT, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir(mode=0o700)
    os.chown(tmp_path / "c", 12345, 12345)
    with pytest.raises(sa.ConfigurationError, match="belongs to another user"):
        ResponseCache(tmp_path / "c")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "c")
    with pytest.raises(sa.ConfigurationError, match="belongs to another user"):
        ResponseCache(link)


def test_a_place_where_anybody_could_swap_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(sa.ConfigurationError, match="anybody may change"):
        ResponseCache(tmp_path / "open" / "c")
    (tmp_path / "open").chmod(0o1777)  # as /tmp is: others can add to it, and not take away
    ResponseCache(tmp_path / "open" / "c")


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "c").touch()
    with pytest.raises(sa.ConfigurationError, match="is a file"):
        ResponseCache(tmp_path / "c")


def test_without_diskcache_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "diskcache", None)
    with pytest.raises(sa.ConfigurationError, match=r"pip install 'sagents-nb\[cache\]'"):
        ResponseCache(tmp_path / "c")


# Failures


def _is_a_miss(cache: ResponseCache, caplog: pytest.LogCaptureFixture) -> None:
    """The model is asked each time, nobody sees an exception, and one warning says why."""
    caplog.set_level(logging.WARNING, "sagents_nb.cache")
    model = sa.RecordedModel(sa.ScriptedModel(["one", "two", "three"]), cache)
    assert [say(model) for _ in range(3)] == ["one", "two", "three"]
    assert len([r for r in caplog.records if "cannot be used" in r.getMessage()]) == 1
    assert cache.stats()["problem"]
    assert cache.stats()["failures"] >= 1


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_damaged_database_is_a_miss_until_it_is_cleared(
    cache: ResponseCache, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    (cache.path / "cache.db").write_bytes(content)
    _is_a_miss(cache, caplog)
    assert "clear() removes it" in caplog.text
    cache.clear()
    cache.put(recording())
    assert cache.get(KEY) is not None


def test_a_database_damaged_while_it_is_open_is_a_miss(
    cache: ResponseCache, caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(200):
        cache.put(recording(f"question {i}", "words " * 200))
    size = (cache.path / "cache.db").stat().st_size
    with open(cache.path / "cache.db", "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    log = cache.path / "cache.db-wal"
    with open(log, "r+b") as file:
        file.seek(log.stat().st_size // 2)
        file.write(b"\xff" * 1_000)
    found = [cache.get(key(f"question {i}").key) for i in range(200)]
    answers = {r.message.text for r in found if r is not None}
    assert answers <= {"words " * 200}
    cache.put(recording())
    cache.clear()
    cache.put(recording())
    assert cache.get(KEY) is not None


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks are waited for as long as a test may take."""
    monkeypatch.setattr(disk, "WAIT", 0.3)


@pytest.mark.usefixtures("impatient")
def test_a_locked_database_is_a_miss_and_passes(
    cache: ResponseCache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put(recording("before"))
    other = sqlite3.connect(cache.path / "cache.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    model = sa.RecordedModel(sa.ScriptedModel(["asked", "asked"]), cache)
    assert say(model) == "asked"
    assert say(sa.RecordedModel(sa.ScriptedModel([]), cache, "replay"), "before") == "Hello!"
    assert cache.stats()["failures"] <= 3  # each has waited once
    assert "locked" in cache.stats()["problem"] or "Timeout" in cache.stats()["problem"]
    other.execute("ROLLBACK")
    other.close()
    assert say(model) == "asked"
    assert say(model) == "asked"  # from the cache: the script is at its end


@pytest.mark.usefixtures("impatient")
def test_a_cache_that_is_locked_when_it_is_opened_is_waited_for_once(
    cache: ResponseCache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(recording())
    # diskcache's own constructor would try for a minute.
    monkeypatch.setattr(disk, "Cache", lambda *args, **kwargs: pytest.fail("diskcache waits"))
    other = sqlite3.connect(cache.path / "cache.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    _is_a_miss(ResponseCache(cache.path), caplog)
    other.close()


def test_a_full_disk_is_a_miss(tmp_path: Path) -> None:
    """The limit on the size of a file stands for it: SQLite fails as on a full disk."""
    script = f"""
        import resource, signal
        import sagents_nb as sa
        from tests.models.cache.asking import key, recording, say
        cache = sa.ResponseCache({str(tmp_path / "c")!r})
        cache.put(recording("small"))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        model = sa.RecordedModel(sa.ScriptedModel(["long " * 100_000] * 3), cache)
        assert all(say(model) == "long " * 100_000 for _ in range(3))
        assert cache.get(key("small").key).message.text == "Hello!"
        print(cache.stats()["problem"])
    """
    pytest.importorskip("resource")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "full" in done.stdout or "disk I/O error" in done.stdout
    assert done.stderr.count("cannot be used") == 1


def test_a_network_drive_is_a_miss(
    cache: ResponseCache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = cache.path.parent / "mounts"
    table.write_text(f"server:/home {cache.path.parent} nfs4 rw 0 0")
    monkeypatch.setattr(drives, "MOUNT_TABLE", table)
    _is_a_miss(cache, caplog)
    assert "network drive" in caplog.text


def test_a_place_that_cannot_be_made_is_a_miss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    _is_a_miss(ResponseCache(tmp_path / "file" / "c"), caplog)
