"""The tables, and what their columns take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sql
from hypothesis import given
from hypothesis import strategies as st

from sagents_nb.errors import ConfigurationError
from sagents_nb.store.database.schema import Json, Time, Words, json_text, tables


@pytest.fixture
def table(url: str) -> Any:
    engine = sql.create_engine(url)
    made = sql.Table(
        "kept",
        sql.MetaData(),
        sql.Column("words", Words()),
        sql.Column("json", Json),
        sql.Column("time", Time),
    )
    made.create(engine)

    def keep(**values: Any) -> Any:
        with engine.begin() as connection:
            connection.execute(made.delete())
            connection.execute(made.insert().values(**values))
            return connection.execute(made.select()).one()

    yield keep
    engine.dispose()


@pytest.mark.parametrize(
    "words", ["", "\0", "a\0b", "\ud800", "\ude00\ud83d", "\ufffe", "\ufffe0000", "\u202eabc", "é"]
)
def test_words_of_any_characters_come_back(table: Any, words: str) -> None:
    kept = table(words=words, json={words: [words]})
    assert kept.words == words
    assert kept.json == {words: [words]}


def test_a_time_comes_back_in_utc(table: Any) -> None:
    summer = datetime(2026, 7, 1, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    kept = table(time=summer).time
    assert kept == summer
    assert kept.tzinfo is UTC


def test_a_time_without_a_zone_is_refused(table: Any) -> None:
    with pytest.raises(sql.exc.StatementError, match="needs its zone"):
        table(time=datetime(2026, 7, 1))


@given(
    st.recursive(
        st.none() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None)),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_is_portable_text_and_comes_back(value: Any) -> None:
    text = json_text(value)
    text.encode()
    assert "\0" not in text
    assert Json().process_result_value(text, None) == value


def test_a_prefix_that_is_no_name_is_refused() -> None:
    for prefix in ("a b", "x; drop table y", '"', "1a", "é", "a" * 31, "a\n"):
        with pytest.raises(ConfigurationError, match="table prefix"):
            tables(prefix)
    assert tables("").journal.name == "journal"
    assert tables("team_").journal.name == "team_journal"
