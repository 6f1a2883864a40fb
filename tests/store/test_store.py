"""Opening a store: what names it, and what is said when it cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa


@pytest.mark.parametrize("as_text", [str, Path, lambda path: f"sqlite:///{path}"])
def test_a_store_is_named_by_a_path_or_a_url(tmp_path: Path, as_text: Any) -> None:
    path = tmp_path / "new folder" / "agents #1 100%.db"
    for _ in range(2):
        store = sa.ConversationStore(as_text(path))
        store.create_conversation()
        count = len(store.list_conversations())
        assert repr(store) == f"ConversationStore({str(path)!r})"
        store.close()
    assert count == 2
    assert path.stat().st_mode & 0o077 == 0  # nobody else's


def test_a_url_may_be_sqlalchemys(url: str) -> None:
    store = sa.ConversationStore(sql.make_url(url))
    assert store.list_conversations() == []
    store.close()


def test_what_cannot_be_opened_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(sa.ConfigurationError, match="cannot be kept in 'mysql'"):
        sa.ConversationStore("mysql://secret@host/db")
    with pytest.raises(sa.ConfigurationError, match="table prefix"):
        sa.ConversationStore(tmp_path / "a.db", table_prefix="a; DROP TABLE x")
    with pytest.raises(sa.AgentError, match="cannot be used") as told:
        sa.ConversationStore("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


WITHOUT = """
import sys
sys.modules["sqlalchemy"] = None
import sagents_nb as sa
print(sa.Scope(user="alice").owner_id)
try:
    sa.ConversationStore("agents.db")
except sa.ConfigurationError as error:
    print(error)
"""


def test_without_sqlalchemy_the_extra_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.stdout == 'alice\nA store needs SQLAlchemy: pip install "sagents-nb[store]".\n'


def test_whoever_has_no_scope_has_conversations_of_their_own(url: str) -> None:
    store = sa.ConversationStore(url)
    mine = store.scoped(sa.Scope(user="alice"))
    made, own = store.create_conversation(), mine.create_conversation()
    assert [c.id for c in store.list_conversations()] == [made.id]
    assert [c.id for c in store.scoped(None).list_conversations()] == [made.id]
    assert [c.id for c in mine.list_conversations()] == [own.id]
    store.close()


def test_the_package_has_no_other_names_than_it_says() -> None:
    import sagents_nb.store

    assert not hasattr(sagents_nb.store, "Another")
    assert not hasattr(sagents_nb.store, "zero")
