"""Behind a pool, a transaction is on whichever connection of the server is free."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.store.journal import Journal
from tests.store import postgres
from tests.store.journals import database_of, kept, note
from tests.talking import PATIENCE, agent_of, call


@pytest.fixture(scope="module", params=["transaction", "session"])
def pool(postgres_server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a pgbouncer with four connections to the server."""
    if postgres.POOLER is None:
        problem = "pgbouncer is not installed; run python tests/store/postgres.py as root"
        if os.environ.get("CI"):
            pytest.fail(problem)
        pytest.skip(problem)
    with postgres.pooled(postgres_server, request.param) as url:
        yield url


@sa.tool
def look(where: str) -> str:
    """Look there."""
    return f"{where} is fine"


def test_several_stores_write_and_read(pool: str) -> None:
    def live(number: int) -> int:
        store = sa.ConversationStore(pool)
        id = store.create_conversation().id
        for n in range(20):
            store.append_text_message(id, "user", f"{number}.{n}")
            assert store.list_conversations(3)
        found = len(store.load_display_messages(id))
        store.close()
        return found

    live(0)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(live, range(4))) == [20] * 4


def test_a_session_goes_on_where_it_was(pool: str) -> None:
    store = sa.ConversationStore(pool)
    agent = agent_of(call("look", where="here"), "Fine.", "Again.", tools=[look])
    session = sa.Session(agent, store=store)
    session.send("go").result()
    session.close()
    again = sa.Session.open(session.id, agent=agent, store=store)
    again.send("and?").result()
    assert [m.role for m in again.messages] == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    again.close()
    store.close()


def test_one_owner_at_a_time(pool: str) -> None:
    with database_of(pool, "pooled") as one, database_of(pool, "pooled") as two:
        journal, _, _ = Journal.open(one, "pooled")
        journal.append([note("one")]).result(PATIENCE)
        with pytest.raises(sa.Owned):
            Journal.open(two, "pooled")
        other, _, _ = Journal.open(two, "pooled", take_over=True)
        with pytest.raises(sa.StaleOwner):
            journal.append([note("late")]).result(PATIENCE)
        other.append([note("two")]).result(PATIENCE)
        assert kept(two, "pooled")[-2:] == ["one", "two"]


def test_files_are_kept(pool: str) -> None:
    storage = sa.SQLStorage(pool)
    files = sa.open_filesystem(("user", "pooled"), [sa.Mount("kept", storage)])
    for n in range(12):
        files.write(f"/kept/{n}.md", f"text {n}")
    files.flush()
    files.close()
    again = sa.open_filesystem(("user", "pooled"), [sa.Mount("kept", storage)])
    assert {again.read(f"/kept/{n}.md").text for n in range(12)} == {f"text {n}" for n in range(12)}
    again.close()
    storage.close()


def test_nothing_that_we_set_is_there_for_others(pool: str) -> None:
    store = sa.ConversationStore(pool)
    for _ in range(8):
        store.create_conversation()
    engine = sql.create_engine(pool, isolation_level="AUTOCOMMIT")
    for _ in range(8):
        with engine.connect() as other:
            assert other.scalar(sql.text("SHOW lock_timeout")) == "0"
            assert other.scalar(sql.text("SHOW idle_in_transaction_session_timeout")) == "0"
    engine.dispose()
    store.close()


def test_prepared_statements_are_for_who_asks_for_them(postgres_url: str) -> None:
    counted = sql.text("SELECT count(*) FROM pg_prepared_statements")
    for asked, prepares in (("", False), ("?prepare_threshold=0", True)):
        store = sa.ConversationStore(postgres_url + asked)
        for _ in range(10):
            store.list_conversations()
        assert bool(store.database.run(lambda connection: connection.scalar(counted))) is prepares
        store.close()
    for wrong in ("often", "-1"):
        with pytest.raises(sa.ConfigurationError, match="prepare_threshold="):
            sa.ConversationStore(f"{postgres_url}?prepare_threshold={wrong}")
