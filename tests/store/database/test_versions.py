"""A database of every version opens, and one of a newer version is left as it is."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import sagents_nb as sa
from sagents_nb.store import display_rows, migrations
from sagents_nb.store.database import schema
from sagents_nb.store.entries import Entry
from sagents_nb.store.journal import Journal
from tests.store import released

STEPS = str(released.FIXTURES / "steps")
RELEASED = ["0001", "0002", "0003", "0004", "0005", "0006"]


@pytest.fixture
def look(url: str) -> Any:
    """Asks the database behind the store's back."""
    engine = sql.create_engine(url)

    def ask(question: Callable[[sql.Connection], Any] | str) -> Any:
        with engine.begin() as connection:
            if isinstance(question, str):
                answer = connection.execute(sql.text(question))
                return answer.all() if answer.returns_rows else None
            return question(connection)

    yield ask
    engine.dispose()


def names(connection: sql.Connection) -> set[str]:
    return set(sql.inspect(connection).get_table_names())


def contents(connection: sql.Connection) -> dict[str, list[Any]]:
    """Everything in every table, and how each is made."""
    made = sql.MetaData()
    made.reflect(connection)
    return {
        table.name: [
            sorted((c.name, str(c.type), c.nullable) for c in table.columns),
            sorted(map(str, connection.execute(sql.select(table)))),
        ]
        for table in made.sorted_tables
    }


def newest(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """As if this sagents_nb had more steps."""
    monkeypatch.setattr(schema, "VERSION", version)
    monkeypatch.setattr(migrations, "VERSIONS", [*migrations.VERSIONS, STEPS])


def test_a_new_database_is_of_the_newest_version(url: str, look: Any) -> None:
    sa.ConversationStore(url, table_prefix="team_").close()
    assert look("SELECT version_num FROM team_version") == [(schema.VERSION,)]
    assert look(names) == set(schema.tables("team_").metadata.tables)


def test_the_newest_version_is_that_of_the_last_step() -> None:
    scripts = ScriptDirectory(migrations.VERSIONS[0], version_locations=migrations.VERSIONS)
    assert scripts.get_heads() == [schema.VERSION]
    assert [step.revision for step in scripts.walk_revisions()][::-1] == RELEASED


def test_all_steps_together_make_the_tables_of_today(look: Any) -> None:
    def differences(connection: sql.Connection) -> Any:
        migrations.migrate(connection, "x_", None, schema.VERSION)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return compare_metadata(context, schema.tables("x_").metadata)

    assert look(differences) == []


@pytest.mark.parametrize("version", RELEASED)
def test_a_store_of_every_released_version_opens_and_goes_on(
    url: str, look: Any, version: str
) -> None:
    released.load(url, version)
    store = sa.ConversationStore(url)
    released.assert_filled(store)
    store.close()
    assert look("SELECT version_num FROM sagents_version") == [(schema.VERSION,)]


def test_an_older_store_is_brought_up_to_date_and_loses_nothing(
    url: str, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = released_contents(url, look)
    newest(monkeypatch, "0007")
    sa.ConversationStore(url).close()
    after = look(contents)
    assert look("SELECT version_num FROM sagents_version") == [("0007",)]
    assert look("SELECT count(*) FROM sagents_conversations WHERE archived") == [(0,)]
    assert {name for name, *_ in after["sagents_conversations"][0]} >= {"archived", "heading"}
    for name in set(before) - {"sagents_version", "sagents_conversations"}:
        assert after[name] == before[name]
    assert len(after["sagents_conversations"][1]) == 3
    assert len(after["sagents_display_messages"][1]) == 2


def released_contents(url: str, look: Any) -> Any:
    released.load(url)
    return look(contents)


def test_a_conversation_without_checksums_gets_them_when_it_is_opened(url: str, look: Any) -> None:
    released.load(url, "0001")
    store = sa.ConversationStore(url)
    assert look("SELECT count(*) FROM sagents_journal WHERE checksum IS NULL") == [(4,)]
    for id in ("saved", "nobody's", "journaled"):  # nobody had the first two open before
        journal, entries, problems = Journal.open(store.database, id)
        assert (len(entries), problems) == (4 if id == "journaled" else 0, [])
        journal.release().result()
    assert look("SELECT count(*) FROM sagents_journal WHERE checksum IS NULL") == [(0,)]
    look("DELETE FROM sagents_journal WHERE seq = 4")
    look("UPDATE sagents_journal SET data = '{}' WHERE seq = 3")
    _, entries, problems = Journal.open(store.database, "journaled")
    assert [entry.seq for entry in entries] == [1, 2]
    assert problems == [
        "Journal entry 3 was set aside: it is not what was written, by its checksum.",
        "The journal was damaged: it had 4 entries, and 3 are there.",
    ]
    store.close()


def test_an_older_store_lists_by_what_its_journals_did_last(url: str, look: Any) -> None:
    released.load(url, "0002")
    look("UPDATE sagents_leases SET owner = ''")
    look("UPDATE sagents_journal SET at = '2099-01-02 03:04:05.000000' WHERE seq = 4")
    look("UPDATE sagents_journal SET at = '2098-01-02 03:04:05.000000' WHERE seq = 3")
    store = sa.ConversationStore(url)
    [found] = store.scoped(sa.Scope(user=7)).list_conversations()
    assert (found.id, found.updated_at.year, found.updated_at.second) == ("journaled", 2099, 5)
    [saved] = store.scoped(sa.Scope(user="alice")).list_conversations()
    assert saved.updated_at.year < 2098
    store.close()


def test_damaged_rows_of_an_older_store_stop_no_step(sqlite_url: str) -> None:
    released.load(sqlite_url, "0001")
    damage = ["5, 'run', x'80'", "6, x'80', '{}'", "'x', 'run', '{}'", "-1, 'run', '{}'"]
    damage += ["7, 'run', CAST(x'80' AS TEXT)", "9223372036854775807, 'run', '{}'", "8, 'run', '['"]
    with contextlib.closing(sqlite3.connect(path_of(sqlite_url))) as connection, connection:
        for row in damage:
            connection.execute(
                "INSERT INTO sagents_journal (conversation_id, seq, kind, data, escaped, at) "
                f"VALUES ('journaled', {row}, 0, '2026-11-22 03:38:44.066149')"
            )
    store = sa.ConversationStore(sqlite_url)
    journal, entries, problems = Journal.open(store.database, "journaled")
    assert (len(entries), len(problems)) == (4, len(damage))
    assert all(" was set aside: " in problem for problem in problems)
    assert journal.append([Entry("run", {})]).result() == 9
    store.close()


def test_a_lost_page_of_an_older_store_stops_no_step_and_is_told(sqlite_url: str) -> None:
    released.load(sqlite_url, "0001")
    path = path_of(sqlite_url)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO sagents_journal VALUES "
            "('journaled', ?, 'run', ?, 0, '2026-11-22 03:38:44.066149')",
            [(seq, f'{{"says":"{"filler" * 100}"}}') for seq in range(5, 100)],
        )
    size = 4096
    pages = [path.read_bytes()[at : at + size] for at in range(0, path.stat().st_size, size)]
    lost = next(n for n, page in enumerate(pages) if page.count(b"filler") > 300)
    path.write_bytes(b"".join(bytes(size) if n == lost else p for n, p in enumerate(pages)))
    store = sa.ConversationStore(sqlite_url)
    with pytest.raises(sa.StoreError, match="the file is damaged; keep a copy"):
        Journal.open(store.database, "journaled")
    assert store.scoped(sa.Scope(user="alice")).load_display_messages("saved")
    _, entries, problems = Journal.open(store.database, "saved")
    assert (entries, problems) == ([], [])
    store.close()


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def test_steps_keep_to_the_prefix(url: str, look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for prefix in ("a_", "b_"):
        sa.ConversationStore(url, table_prefix=prefix).close()
    newest(monkeypatch, "0007")
    sa.ConversationStore(url, table_prefix="b_").close()
    versions = [look(f"SELECT version_num FROM {prefix}version") for prefix in ("a_", "b_")]
    assert versions == [[("0006",)], [("0007",)]]


def test_a_search_is_right_after_a_step_that_makes_tables_anew(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display_rows, "BEHIND", 0)
    with contextlib.closing(sa.ConversationStore(sqlite_url)) as store:
        gone = store.create_conversation().id
        store.append_text_message(gone, "user", "Oslo")
        assert len(store.search_messages("oslo")) == 1
    newest(monkeypatch, "0007")
    with contextlib.closing(sqlite3.connect(path_of(sqlite_url))) as connection, connection:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("DELETE FROM sagents_conversations")
    sa.ConversationStore(sqlite_url).close()
    with contextlib.closing(sqlite3.connect(path_of(sqlite_url))) as connection:
        [(count,)] = connection.execute("SELECT count(*) FROM sagents_search_gone")
        [(triggers,)] = connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE type='trigger'"
        )
    assert (count, triggers) == (1, 3), "kept by the step, and by whoever deletes"


def test_a_step_that_fails_leaves_the_older_version_as_it_was(
    url: str, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = released_contents(url, look)
    with monkeypatch.context() as newer:
        newest(newer, "0008")
        with pytest.raises(sa.AgentError, match="cannot be used"):
            sa.ConversationStore(url)
    assert look(contents) == before
    store = sa.ConversationStore(url)
    released.assert_filled(store)
    store.close()


def test_of_many_that_open_an_older_store_one_takes_the_step(
    url: str, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    released.load(url)
    newest(monkeypatch, "0007")
    with ThreadPoolExecutor(6) as pool:
        for store in list(pool.map(sa.ConversationStore, [url] * 6)):
            store.close()
    assert look("SELECT version_num FROM sagents_version") == [("0007",)]


def test_of_many_that_open_a_new_database_one_makes_the_tables(url: str, look: Any) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(sa.ConversationStore, [url] * 6))
    stores[0].create_conversation(id="x")
    assert stores[5].get_conversation("x").id == "x"
    for store in stores:
        store.close()
    assert look("SELECT version_num FROM sagents_version") == [(schema.VERSION,)]


@pytest.mark.parametrize("version", ["0007", "0000", "", "٣"])
def test_a_newer_store_is_refused_and_left_as_it_is(url: str, look: Any, version: str) -> None:
    released.load(url)
    look(f"UPDATE sagents_version SET version_num = '{version}'")
    before = look(contents)
    with pytest.raises(sa.ConfigurationError, match="upgrade sagents_nb"):
        sa.ConversationStore(url)
    assert look(contents) == before


def test_a_version_that_is_no_text_is_refused(sqlite_url: str) -> None:
    released.load(sqlite_url)
    engine = sql.create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE sagents_version SET version_num = x'fffe'")
    engine.dispose()
    with pytest.raises(sa.ConfigurationError, match="upgrade sagents_nb"):
        sa.ConversationStore(sqlite_url)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_not_a_byte_of_a_newer_file_is_written(sqlite_url: str, mode: str) -> None:
    released.load(sqlite_url)
    engine = sql.create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE sagents_version SET version_num = '0007'")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"PRAGMA journal_mode={mode}")
    engine.dispose()
    path = path_of(sqlite_url)
    before = path.read_bytes(), path.stat().st_mtime_ns
    with pytest.raises(sa.ConfigurationError, match="upgrade sagents_nb"):
        sa.ConversationStore(sqlite_url)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_tables_of_somebody_else_are_left_alone(url: str, look: Any) -> None:
    look(lambda connection: connection.execute(sql.text("CREATE TABLE sagents_leases (a INTEGER)")))
    with pytest.raises(sa.ConfigurationError, match="sagents_leases that is no store's; give"):
        sa.ConversationStore(url)
    assert look(names) == {"sagents_leases"}
    sa.ConversationStore(url, table_prefix="agents_").close()


def test_a_view_of_somebody_else_is_never_taken_for_a_table(url: str, look: Any) -> None:
    look("CREATE VIEW sagents_leases AS SELECT 1 AS a")
    with pytest.raises(sa.ConfigurationError, match="view sagents_leases that is no store's; give"):
        sa.ConversationStore(url)
    assert look(names) == set()


IMPORTS = """
import sys
import sagents_nb as sa
sa.Session, sa.Scope
assert "sqlalchemy" not in sys.modules, "SQLAlchemy, before there is a store"
for _ in range(2):
    store = sa.ConversationStore(sys.argv[1])
    store.create_conversation()
    store.close()
assert "alembic" not in sys.modules, "alembic, for a new store and a current one"
print("light")
"""


def test_only_an_older_store_loads_alembic_and_only_a_store_sqlalchemy(sqlite_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, sqlite_url], capture_output=True, text=True
    )
    assert done.stdout == "light\n", done.stderr
