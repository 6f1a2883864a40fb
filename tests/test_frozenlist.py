from __future__ import annotations

import gc
import pickle
from weakref import WeakKeyDictionary

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagents_nb.frozenlist import FrozenList, Root
from tests.talking import in_threads


def test_appending_leaves_the_older_snapshot_as_it_was() -> None:
    old = FrozenList([1, 2])
    new = old.append(3)
    assert (list(old), list(new)) == ([1, 2], [1, 2, 3])


def test_two_continuations_of_one_snapshot_do_not_see_each_other() -> None:
    base = FrozenList("ab")
    left, right = base.append("l"), base.append("r")
    assert (left[:], right[:], left.append("2")[:]) == (["a", "b", "l"], ["a", "b", "r"], [*"abl2"])


def test_appending_to_the_newest_snapshot_shares_its_storage() -> None:
    first = FrozenList(range(1000))
    assert first.append(1).continues(first)


def test_what_is_new_since_an_earlier_snapshot_is_all_of_it_where_it_continues_another() -> None:
    first = FrozenList("ab")
    longer = first.append("c").append("d")
    assert longer.since(first) == ["c", "d"]
    assert longer.since(longer) == []
    for other in (None, FrozenList("ab"), longer.append("e"), first.append("x")):
        assert longer.since(other) == [*"abcd"]


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(), max_size=4)), max_size=30))
def test_any_tree_of_extensions_equals_that_of_plain_lists(
    steps: list[tuple[int, list[int]]],
) -> None:
    frozen, plain = [FrozenList[int]()], [list[int]()]
    for origin, added in steps:
        origin %= len(plain)
        from_it = frozen[origin]
        frozen.append(from_it.append(added[0]) if len(added) == 1 else from_it.extend(added))
        plain.append(plain[origin] + added)
    assert frozen == plain
    for one, other in zip(frozen, plain, strict=True):
        assert (len(one), list(one), bool(one)) == (len(other), other, bool(other))
        assert list(reversed(one)) == other[::-1]


@given(st.lists(st.integers()), st.lists(st.integers()), st.data())
def test_indices_and_slices_mean_what_they_mean_for_lists(
    mine: list[int], theirs: list[int], data: st.DataObject
) -> None:
    frozen = FrozenList(mine)
    frozen.extend(theirs)  # longer storage than the snapshot's own length
    part = data.draw(st.slices(len(mine)))
    assert frozen[part] == mine[part]
    for index in range(-len(mine), len(mine)):
        assert frozen[index] == mine[index]
    for index in (len(mine), -len(mine) - 1):
        with pytest.raises(IndexError):
            frozen[index]


@pytest.mark.usefixtures("eager_switching")
def test_threads_that_continue_one_snapshot_each_get_their_own_list() -> None:
    base = FrozenList(range(10))

    def grow(thread: int) -> FrozenList[object]:
        mine: FrozenList[object] = base  # type: ignore[assignment]
        for step in range(500):
            mine = mine.append((thread, step))
        return mine

    for thread, mine in enumerate(in_threads(8, grow)):
        assert mine == [*range(10), *((thread, step) for step in range(500))]
    assert base == list(range(10))


def test_it_equals_lists_and_tuples_but_not_other_sequences() -> None:
    assert FrozenList("ab") == ["a", "b"]
    assert FrozenList("ab") == ("a", "b")
    assert FrozenList("ab") != "ab"
    assert FrozenList("ab") != ["a"]


def test_it_cannot_be_hashed_or_assigned_to() -> None:
    with pytest.raises(TypeError):
        hash(FrozenList())
    with pytest.raises(TypeError):
        FrozenList("a")[0] = "b"  # type: ignore[index]


def test_a_pickled_snapshot_holds_its_own_items_only() -> None:
    snapshot = FrozenList(["mine"])
    snapshot.append("secret of another branch")
    data = pickle.dumps(snapshot)
    assert pickle.loads(data) == ["mine"]
    assert b"secret" not in data


def test_lists_have_one_root_for_as_long_as_they_continue_each_other() -> None:
    first = FrozenList([1])
    longer = first.extend([2, 3])
    assert longer.root is first.root is FrozenList(longer).root
    fork = first.append(9)
    assert fork.root is not first.root
    assert FrozenList([1]).root is not first.root


def test_what_is_remembered_by_a_root_goes_with_the_last_of_its_lists() -> None:
    remembered: WeakKeyDictionary[Root, str] = WeakKeyDictionary()
    first = FrozenList([1])
    remembered[first.root] = "one"
    longer = first.append(2)
    del first
    gc.collect()
    assert remembered[longer.root] == "one"
    del longer
    gc.collect()
    assert not remembered
