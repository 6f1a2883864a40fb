"""A row that is altered, lost, or another's is noticed at the next opening, and then told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.store.database import leases
from sagents_nb.store.database.thread import Database
from sagents_nb.store.entries import BEHIND, UNKNOWN, Entry, Tally
from sagents_nb.store.journal import Journal, journals_of
from tests.store.journals import begin, count, database_of, kept, note, said
from tests.talking import PATIENCE


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """One with ten entries in "c", and five in "d"."""
    with database_of(url, "c", "d") as made:
        for id, size in (("c", 10), ("d", 5)):
            journal, _, _ = Journal.open(made, id)
            journal.append([note(f"{id}{n}") for n in range(size)]).result(PATIENCE)
            journal.release().result(PATIENCE)
        yield made


def change(database: Database, statement: Any) -> None:
    """What no journal does."""
    database.run(lambda connection: connection.execute(statement))


def told(database: Database, id: str = "c") -> tuple[list[Any], list[str]]:
    """What can be read, and what is said of the rest; at the second opening nothing is."""
    before = list(database.run(lambda c: said(journals_of(c, database.tables, [id])[id].entries())))
    journal, entries, problems = Journal.open(database, id)
    journal.release().result(PATIENCE)
    assert said(entries) == before == kept(database, id)
    return said(entries), problems


def missing(had: int, found: int) -> str:
    return f"The journal was damaged: it had {had} entries, and {found} are there."


ALTERED = "The journal was damaged: its entries are not all those that were written."


def all_of(id: str, count: int) -> list[str]:
    return [f"{id}{n}" for n in range(count)]


def test_a_journal_that_nobody_damaged_has_no_problem(database: Database) -> None:
    assert told(database) == (all_of("c", 10), [])
    assert told(database, "d") == (all_of("d", 5), [])


@pytest.mark.parametrize("gone", [{1}, {5}, {10}, {8, 9, 10}, {1, 2, 3, 4, 5, 6, 7, 8, 9}])
def test_lost_rows_are_told_wherever_they_were(database: Database, gone: set[int]) -> None:
    journal = database.tables.journal
    of_it = journal.c.conversation_id == "c"
    change(database, journal.delete().where(of_it, journal.c.seq.in_(gone)))
    left = [f"c{n}" for n in range(10) if n + 1 not in gone]
    assert told(database) == (left, [missing(10, len(left))])
    assert told(database, "d") == (all_of("d", 5), [])


def test_a_journal_that_is_empty_and_was_not_is_told(database: Database) -> None:
    change(database, database.tables.journal.delete())
    assert told(database) == ([], [missing(10, 0)])


def test_the_number_of_a_row_that_was_lost_is_not_used_again(database: Database) -> None:
    journal = database.tables.journal
    change(database, journal.delete().where(journal.c.seq > 4))
    assert told(database)[1] == [missing(10, 4)]
    again, _, _ = Journal.open(database, "c")
    assert again.append([note("new")]).result(PATIENCE) == 11


@pytest.mark.parametrize(
    "changes",
    [{"data": '{"says":"c3 "}'}, {"data": '{"says":"d3"}'}, {"kind": "cut"}, {"escaped": True}],
)
def test_a_row_that_was_altered_is_set_aside(database: Database, changes: dict[str, Any]) -> None:
    journal, aside = database.tables.journal, database.tables.journal_damaged
    of_it = sql.and_(journal.c.conversation_id == "c", journal.c.seq == 4)
    change(database, journal.update().where(of_it).values(**changes))
    left = [text for text in all_of("c", 10) if text != "c3"]
    reason = "it is not what was written, by its checksum"
    assert told(database) == (left, [f"Journal entry 4 was set aside: {reason}."])
    row = database.run(lambda connection: connection.execute(aside.select()).one())
    assert (row.conversation_id, row.seq, row.reason) == ("c", 4, reason)


def test_a_row_of_another_conversation_is_never_read_as_ones_own(database: Database) -> None:
    journal = database.tables.journal
    of_it = journal.c.conversation_id == "d"
    change(
        database, journal.update().where(of_it).values(conversation_id="c", seq=journal.c.seq + 10)
    )
    entries, problems = told(database)
    assert entries == all_of("c", 10)
    assert len(problems) == 5
    assert told(database, "d") == ([], [missing(5, 0)])


def test_rows_that_changed_places_are_noticed(database: Database) -> None:
    journal = database.tables.journal
    for old, new in ((4, 99), (7, 4), (99, 7)):
        change(database, journal.update().where(journal.c.seq == old).values(seq=new))
    entries, problems = told(database)
    assert entries == [text for text in all_of("c", 10) if text not in ("c3", "c6")]
    assert len(problems) == 2


def test_a_row_that_was_deleted_and_is_back_is_told(database: Database) -> None:
    table = database.tables.journal
    of_it = sql.and_(table.c.conversation_id == "c", table.c.seq == 2)
    old = database.run(
        lambda connection: connection.execute(table.select().where(of_it)).mappings().one()
    )
    journal, _, _ = Journal.open(database, "c")
    journal.compact([2, 3]).result(PATIENCE)
    journal.release().result(PATIENCE)
    change(database, table.insert().values(**old))
    assert told(database)[1] == [missing(8, 9)]
    change(database, table.delete().where(table.c.conversation_id == "c", table.c.seq == 1))
    journal, _, _ = Journal.open(database, "c", take_over=True)
    journal.compact([2]).result(PATIENCE)
    journal.append([note("new")]).result(PATIENCE)
    journal.release().result(PATIENCE)
    change(database, table.delete().where(table.c.conversation_id == "c", table.c.seq == 4))
    change(database, table.insert().values(**old))
    assert told(database)[1] == [ALTERED]


@pytest.mark.parametrize("tally", [None, "", "10 10 5 5", Tally(5, 5, 7).text("d")])
def test_a_tally_that_is_lost_is_told_and_every_row_is_read(
    database: Database, tally: str | None
) -> None:
    change(database, database.tables.leases.update().values(tally=tally))
    assert told(database) == (all_of("c", 10), [UNKNOWN])


def test_a_lost_lease_is_told_and_so_is_a_lost_journal_with_it(database: Database) -> None:
    change(database, database.tables.leases.delete())
    assert told(database) == (all_of("c", 10), [UNKNOWN])
    change(database, database.tables.leases.delete())
    change(database, database.tables.journal.delete())
    assert told(database) == ([], [UNKNOWN])


def test_the_tally_of_another_conversation_is_not_ones_own(database: Database) -> None:
    begin(database, "e")
    leases = database.tables.leases
    ask = sql.select(leases.c.tally).where(leases.c.conversation_id == "e")
    empty = database.run(lambda connection: connection.scalar(ask))
    change(database, database.tables.journal.delete())
    change(database, leases.update().values(tally=empty))
    assert told(database) == ([], [UNKNOWN])
    assert told(database, "e") == ([], [])


def test_who_does_not_own_it_reads_what_is_whole_and_has_the_rest_in_the_log(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    journal = database.tables.journal
    of_it = journal.c.conversation_id == "c"
    change(database, journal.update().where(of_it, journal.c.seq == 4).values(data="{}"))
    change(database, journal.delete().where(of_it, journal.c.seq == 5))
    read = database.run(
        lambda connection: said(journals_of(connection, database.tables, ["c"])["c"].entries())
    )
    assert read == [text for text in all_of("c", 10) if text not in ("c3", "c4")]
    assert "'c': Journal entry 4 was set aside" in caplog.text
    assert missing(10, 9) in caplog.text


def test_what_is_appended_compacted_and_set_aside_keeps_the_tally(database: Database) -> None:
    for round in range(3):
        journal, entries, problems = Journal.open(database, "c")
        assert problems == []
        journal.append([note(f"{round} \0\ud800\ufffe {n}") for n in range(1200)]).result(PATIENCE)
        journal.compact([entry.seq for entry in entries] + [1, 77_777]).result(PATIENCE)
        journal.set_aside({journal.last_seq: "no sense", 88_888: "not there"}).result(PATIENCE)
        journal.append([]).result(PATIENCE)
        journal.release().result(PATIENCE)
    assert len(kept(database)) == 1199
    tables = database.tables
    assert database.run(lambda connection: count(connection, tables.journal)) == 1199 + 5


def test_rows_of_a_process_of_the_older_version_are_no_damage(database: Database) -> None:
    table = database.tables.journal
    of_it = sql.and_(table.c.conversation_id == "c", table.c.seq == 10)
    last = database.run(
        lambda connection: connection.execute(table.select().where(of_it)).mappings().one()
    )
    unknown = {"seq": 11, "data": '{"says":"c10"}', "checksum": None}
    change(database, table.insert().values(**{**last, **unknown}))
    assert told(database) == (all_of("c", 11), [])
    journal, _, _ = Journal.open(database, "c", take_over=True)
    assert journal.append([note("c11")]).result(PATIENCE) == 12
    journal.compact([11]).result(PATIENCE)
    assert kept(database) == [*all_of("c", 10), "c11"]


# what a tally may lack while a run goes on


def going_on(database: Database, size: int) -> Journal:
    """Entries of a run that has not ended, behind the ten."""
    journal, _, _ = Journal.open(database, "c")
    for n in range(size):
        journal.append([note(f"new {n}", "message")]).result(PATIENCE)
    return journal


def lost(database: Database, *seqs: int) -> None:
    journal = database.tables.journal
    change(
        database, journal.delete().where(journal.c.conversation_id == "c", journal.c.seq.in_(seqs))
    )


def after_a_crash(database: Database) -> list[str]:
    """What is told of the journal that a process has left as it was."""
    journal, entries, problems = Journal.open(database, "c", take_over=True)
    journal.release().result(PATIENCE)
    assert said(entries) == kept(database)
    return problems


@pytest.mark.parametrize("size", [0, 1, BEHIND - 1, BEHIND, BEHIND + 1, 3 * BEHIND + 5])
def test_a_journal_that_was_left_in_a_run_has_no_problem(database: Database, size: int) -> None:
    going_on(database, size)
    assert after_a_crash(database) == []
    assert len(kept(database)) == 10 + size


def test_a_tally_is_written_every_so_many_rows_and_with_the_end_of_a_run(
    database: Database,
) -> None:
    def told() -> int:
        tally = database.run(
            lambda connection: leases.tallies(connection, database.tables, ["c"])["c"]
        )
        assert tally is not None
        assert tally.rows == tally.last_seq
        return tally.last_seq

    journal = going_on(database, 0)
    first = told()
    for number in range(1, 2 * BEHIND + 1):
        journal.append([note(number, "message")]).result(PATIENCE)
        assert told() == first + number // BEHIND * BEHIND
    journal.append([note("", "message")]).result(PATIENCE)
    journal.append([Entry("run", {"status": "running"})]).result(PATIENCE)
    assert told() == first + 2 * BEHIND
    journal.append([Entry("run", {"status": "completed"})]).result(PATIENCE)
    assert told() == first + 2 * BEHIND + 3
    journal.append([note("", "message")]).result(PATIENCE)
    journal.release().result(PATIENCE)
    assert told() == first + 2 * BEHIND + 4


@pytest.mark.parametrize("gone", [{5}, {11}, {13}, {11, 12}, {5, 12}])
def test_lost_rows_that_no_tally_has_are_told_too(database: Database, gone: set[int]) -> None:
    going_on(database, 5)
    lost(database, *gone)
    assert after_a_crash(database) == [missing(15, 15 - len(gone))]
    assert after_a_crash(database) == []


def test_a_row_that_no_tally_has_and_that_was_altered_is_set_aside_alone(
    database: Database,
) -> None:
    going_on(database, 5)
    journal = database.tables.journal
    change(database, journal.update().where(journal.c.seq == 13).values(data='{"says":"evil"}'))
    [problem] = after_a_crash(database)
    assert problem.startswith("Journal entry 13 was set aside: it is not what was written")
    assert after_a_crash(database) == []


@pytest.mark.parametrize("more", [1, 3])
def test_numbers_of_what_could_not_be_written_are_no_loss(database: Database, more: int) -> None:
    def full(connection: Any) -> None:
        raise OSError("the disk is full")

    journal = going_on(database, 3)
    for n in range(more):
        with pytest.raises(sa.StoreError):
            journal.append([note("lost", "message")] * 2, full).result(PATIENCE)
        journal.append([note(f"and on {n}", "message")]).result(PATIENCE)
    assert after_a_crash(database) == []
    assert len(kept(database)) == 13 + more


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_what_the_database_gave_up_and_was_done_again_is_no_loss(database: Database) -> None:
    journal = going_on(database, 3)
    go_on, tries = threading.Event(), []

    def lose(connection: Any) -> None:
        tries.append(connection)
        if len(tries) == 1:
            connection.exec_driver_sql("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")

    held = database.submit(lambda connection: go_on.wait(PATIENCE))
    writing = [journal.append([note("twice", "message")] * 2), database.submit(lose)]
    go_on.set()
    for future in (held, *writing):
        future.result(PATIENCE)
    assert len(tries) == 2
    journal.append([note("and on", "message")]).result(PATIENCE)
    assert after_a_crash(database) == []


def test_a_release_brings_the_tally_up_to_date(database: Database) -> None:
    going_on(database, 5).release().result(PATIENCE)
    lost(database, 14, 15)
    assert told(database)[1] == [missing(15, 13)]


def test_what_is_compacted_and_set_aside_in_a_run_is_no_loss(database: Database) -> None:
    journal = going_on(database, 5)
    journal.compact([3, 12]).result(PATIENCE)
    journal.append([note("more", "message")]).result(PATIENCE)
    journal.set_aside({4: "no sense", 16: "no sense"}).result(PATIENCE)
    journal.append([note("and more", "message")]).result(PATIENCE)
    assert after_a_crash(database) == []
    assert len(kept(database)) == 17 - 4
