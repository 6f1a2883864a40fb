"""A database that somebody else wrote into is never code, and no way to other files."""

from __future__ import annotations

import pickle
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diskcache
import pytest

import sagents_nb as sa
from sagents_nb.models.cache import ResponseCache
from sagents_nb.models.cache.disk import StrictDisk
from sagents_nb.models.cache.recording import to_row
from tests.models.cache.asking import key, recording, say
from tests.session.hours import Hours

KEY = key("hi").key


class Planted:
    """A pickle that makes the file ``path`` where it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


class Attack:
    """A cache with one good row, a witness file outside, and what would prove code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cache"
        self.ran = folder / "ran"
        self.outside = folder / "outside.txt"
        self.outside.write_text('"a secret"')
        cache = ResponseCache(self.folder)
        cache.put(recording())
        assert cache.get(KEY) is not None

    def sql(self, statement: str, *values: Any) -> None:
        connection = sqlite3.connect(self.folder / "cache.db")
        with connection:
            connection.execute(statement, values)
        connection.close()

    @property
    def failed(self) -> bool:
        return self.outside.read_text() == '"a secret"' and not self.ran.exists()


def a_pickled_value(attack: Attack) -> None:
    attack.sql("UPDATE Cache SET mode = 4, value = ?", pickle.dumps(Planted(attack.ran)))


def a_pickled_file(attack: Attack) -> None:
    (attack.folder / "planted.val").write_bytes(pickle.dumps(Planted(attack.ran)))
    attack.sql("UPDATE Cache SET mode = 4, value = NULL, filename = 'planted.val'")


def a_pickled_key(attack: Attack) -> None:
    attack.sql("UPDATE Cache SET raw = 0, key = ?", pickle.dumps(Planted(attack.ran)))


def a_file_to_read(attack: Attack) -> None:
    attack.sql("UPDATE Cache SET mode = 3, value = NULL, filename = ?", str(attack.outside))


def a_file_to_delete(attack: Attack) -> None:
    attack.sql("UPDATE Cache SET filename = ?, expire_time = 1.0", str(attack.outside))


ATTACKS = [a_pickled_value, a_pickled_file, a_pickled_key, a_file_to_read, a_file_to_delete]


def used(cache: Any) -> None:
    """All that diskcache does to rows."""
    for action in (
        lambda: cache.get(KEY),
        lambda: list(cache),
        lambda: cache.expire(),
        lambda: cache.set("another", "value"),
        lambda: cache.clear(),
    ):
        try:
            action()
        except Exception:
            continue


@pytest.mark.parametrize("plant", ATTACKS)
def test_a_planted_row_is_a_miss(tmp_path: Path, plant: Callable[[Attack], None]) -> None:
    attack = Attack(tmp_path)
    plant(attack)
    cache = ResponseCache(attack.folder)
    assert cache.get(KEY) is None
    assert list(cache.recordings()) == []
    model = sa.RecordedModel(sa.ScriptedModel(["asked again"]), cache)
    assert say(model) == "asked again"
    cache.clear()
    assert attack.failed
    assert cache.stats()["failures"] == 0


@pytest.mark.parametrize("plant", ATTACKS)
def test_whatever_is_done_to_a_planted_row_nothing_happens(
    tmp_path: Path, plant: Callable[[Attack], None]
) -> None:
    attack = Attack(tmp_path)
    plant(attack)
    used(diskcache.Cache(str(attack.folder), disk=StrictDisk))
    assert attack.failed


@pytest.mark.parametrize(
    ("disk", "plant"),
    [
        (diskcache.Disk, a_pickled_value),
        (diskcache.Disk, a_pickled_file),
        (diskcache.Disk, a_pickled_key),
        (diskcache.JSONDisk, a_pickled_key),
    ],
)
def test_the_attacks_do_work_on_diskcache_itself(
    tmp_path: Path, disk: type, plant: Callable[[Attack], None]
) -> None:
    attack = Attack(tmp_path)
    plant(attack)
    used(diskcache.Cache(str(attack.folder), disk=disk))
    assert not attack.failed


@pytest.mark.parametrize("disk", [diskcache.Disk, diskcache.JSONDisk])
def test_and_so_does_deleting_a_file(tmp_path: Path, disk: type) -> None:
    attack = Attack(tmp_path)
    a_file_to_delete(attack)
    used(diskcache.Cache(str(attack.folder), disk=disk))
    assert not attack.outside.exists()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO Settings VALUES ('sqlite_writable_schema', 1)",
        "INSERT INTO Settings VALUES ('sqlite_journal_mode = off; --', 1)",
        "INSERT INTO Settings VALUES ('get', 'x')",
        "INSERT OR REPLACE INTO Settings VALUES ('eviction_policy', '../x')",
        "CREATE TRIGGER t AFTER UPDATE ON Cache BEGIN DELETE FROM Cache; END",
        "CREATE VIEW CacheView AS SELECT * FROM Cache",
    ],
)
def test_settings_and_objects_of_somebody_else_are_refused(
    tmp_path: Path, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    attack = Attack(tmp_path)
    attack.sql(statement)
    cache = ResponseCache(attack.folder)
    assert cache.get(KEY) is None
    assert "that was not made here" in caplog.text
    assert cache.clear() == 0
    cache.put(recording())
    assert cache.get(KEY) is not None


def test_a_link_in_place_of_the_database_is_refused(tmp_path: Path) -> None:
    attack = Attack(tmp_path)
    database = attack.folder / "cache.db"
    database.rename(tmp_path / "elsewhere.db")
    database.symlink_to(tmp_path / "elsewhere.db")
    assert ResponseCache(attack.folder).get(KEY) is None


def test_a_row_that_claims_to_be_large_pushes_nothing_out(tmp_path: Path) -> None:
    attack = Attack(tmp_path)
    attack.sql("UPDATE Cache SET size = ?", 2**62)
    cache = ResponseCache(attack.folder)
    cache.put(recording("more"))
    assert cache.get(key("more").key) is not None


@pytest.mark.parametrize("value", [b"bytes", 1, 1.5, None, ["x"], "text"])
def test_only_text_is_stored(tmp_path: Path, value: Any) -> None:
    cache = diskcache.Cache(str(tmp_path), disk=StrictDisk)
    if value == "text":
        cache["key"] = value
        assert cache["key"] == value
        return
    with pytest.raises(TypeError):
        cache["key"] = value
    with pytest.raises(TypeError):
        cache[value] = "text"


COLUMNS = ("key", "raw", "expire_time", "tag", "size", "mode", "filename", "value")


def _mutated(rng: random.Random, attack: Attack, good: str) -> None:
    """One row, changed in one to three columns."""
    bits = bytearray(good.encode())
    bits[rng.randrange(len(bits))] ^= 1 << rng.randrange(8)
    odd: list[Any] = [
        *(None, 0, 1, 2, 3, 4, 5, -1, 2**62, 1.5, float("inf"), "", "x", b"", b"\x80\x04."),
        *("../outside.txt", str(attack.outside), "/etc/passwd", "cache.db", "\0", "\ud7ff"),
        pickle.dumps(Planted(attack.ran)),
        *(good[: rng.randrange(len(good))], good + good, bytes(bits), good.encode()),
        bits.decode("utf-8", "replace"),
        "[" * 100_000,
        '{"sum": "", "recording": {}}',
    ]
    for name in rng.sample(COLUMNS, rng.randint(1, 3)):
        attack.sql(f"UPDATE OR REPLACE Cache SET {name} = ?", rng.choice(odd))


def _campaign(folder: Path, rounds: int) -> None:
    rng = random.Random(20261122)
    attack = Attack(folder)
    cache = ResponseCache(attack.folder)
    wanted = cache.get(KEY)
    for round in range(rounds):
        cache.put(recording())
        _mutated(rng, attack, to_row(recording()))
        found = cache.get(KEY)
        assert found is None or found == wanted, f"round {round}: a wrong answer"
        list(cache.recordings())
        if rng.random() < 0.1 or cache.stats()["problem"]:
            cache.clear()
            assert cache.stats()["problem"] == ""
        assert attack.failed, f"round {round}: code ran, or a file was touched"
    cache.clear()
    cache.put(recording())
    assert cache.get(KEY) == wanted


def test_500_mutated_rows_are_misses_or_what_they_were(tmp_path: Path) -> None:
    _campaign(tmp_path, 500)


@pytest.mark.soak
def test_5000_mutated_rows_are_misses_or_what_they_were(tmp_path: Path) -> None:
    _campaign(tmp_path, 5_000)


def test_an_expired_row_is_a_miss(
    tmp_path: Path, hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diskcache.core.time", hours)
    cache = ResponseCache(tmp_path / "c", expire=60)
    cache.put(recording())
    assert cache.get(KEY) is not None
    hours.pass_by(61)
    assert cache.get(KEY) is None
