from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.interrupts import ALL_DECISIONS, canonical_json, decisions_for, digest_of

APPROVE, REJECT = sa.Approve(), sa.Reject("no")


def waiting(*allowed: tuple[str, ...]) -> sa.Interrupt:
    """An interrupt with one call per argument: c0, c1, …"""
    requests = (
        sa.ActionRequest(f"c{index}", f"tool{index}", {"n": index}, allowed_decisions=words)
        for index, words in enumerate(allowed)
    )
    return sa.Interrupt("hitl", tuple(requests))


TWO = waiting(ALL_DECISIONS, ALL_DECISIONS)


@pytest.mark.spec("P3")
def test_one_decision_is_for_all() -> None:
    assert decisions_for(TWO, APPROVE) == {"c0": APPROVE, "c1": APPROVE}
    assert decisions_for(TWO, {"type": "reject", "message": "no"}) == {"c0": REJECT, "c1": REJECT}


@pytest.mark.spec("P3", "S1.3.10")
def test_a_list_pairs_by_position() -> None:
    assert decisions_for(TWO, [APPROVE, REJECT]) == {"c0": APPROVE, "c1": REJECT}
    assert decisions_for(TWO, (REJECT, {"type": "approve"})) == {"c0": REJECT, "c1": APPROVE}


@pytest.mark.spec("P3", "S1.3.10")
def test_a_dict_pairs_by_id_whatever_its_order() -> None:
    assert decisions_for(TWO, {"c1": REJECT, "c0": APPROVE}) == {"c0": APPROVE, "c1": REJECT}


@pytest.mark.parametrize("as_data", [False, True])
def test_an_edit_that_is_changed_after_it_was_given_stays_as_it_was_given(as_data: bool) -> None:
    arguments: dict[str, Any] = {"to": ["a"]}
    given = {"type": "edit", "arguments": arguments} if as_data else sa.Edit(arguments)
    decided = decisions_for(TWO, given)
    arguments["to"].append("b")
    arguments["more"] = 1
    assert decided == dict.fromkeys(["c0", "c1"], sa.Edit({"to": ["a"]}))


@pytest.mark.spec("S1.3.10")
@pytest.mark.parametrize("given", [{"c0": APPROVE}, {"c0": APPROVE, "c1": APPROVE, "c9": APPROVE}])
def test_a_dict_must_name_exactly_the_waiting_calls(given: Any) -> None:
    with pytest.raises(sa.InvalidDecision, match="c9" if "c9" in given else "c1"):
        decisions_for(TWO, given)


@pytest.mark.spec("S1.3.4")
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_number_of_decisions_names_both_numbers(count: int) -> None:
    with pytest.raises(sa.InvalidDecision, match=rf"2 calls.*but {count}"):
        decisions_for(TWO, [APPROVE] * count)


@pytest.mark.spec("S1.3.6")
@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"message": "x"}, "Decision 1 .* no 'type'"),
        ({"type": "aprove"}, "Decision 1 .*cannot be read"),
        ({"type": "reject", "message": 5}, "Decision 1 .*cannot be read"),
        ({"type": None}, "Decision 1 .* a NoneType as its 'type'"),
        ({"type": pd.Series([1, 2])}, "Decision 1 .* a Series as its 'type'; use one of approve"),
        ({"type": np.array([1, 2])}, "Decision 1 .* a ndarray as its 'type'"),
        ({"type": pd.DataFrame({"a": [1]})}, "Decision 1 .* a DataFrame as its 'type'"),
        ({"type": pd.NA}, "Decision 1 .* a NAType as its 'type'"),
        ({"type": "edit"}, "Decision 1 .* without 'arguments'"),
        ({"type": "edit", "arguments": [1]}, "Decision 1 .* without 'arguments'"),
        ("approve", "Decision 1 .* is a str"),
        (None, "Decision 1 .* is a NoneType"),
        (True, "Decision 1 .* is a bool"),
        (sa.Respond("x"), "Decision 1 .*'respond'.*only approve, edit, reject"),
    ],
)
def test_a_bad_decision_is_named_by_its_position(second: Any, said: str) -> None:
    with pytest.raises(sa.InvalidDecision, match=said):
        decisions_for(TWO, [APPROVE, second])


@pytest.mark.spec("S1.3.6")
@pytest.mark.parametrize("given", [None, True, 3, "approve", b"x", object()])
def test_what_is_no_decision_at_all_is_refused(given: Any) -> None:
    with pytest.raises(sa.InvalidDecision):
        decisions_for(waiting(ALL_DECISIONS), given)


@pytest.mark.spec("S1.3.6")
def test_an_interrupt_without_calls_takes_no_decision() -> None:
    with pytest.raises(sa.InvalidDecision, match="no tool call"):
        decisions_for(sa.Interrupt("halt"), APPROVE)


decisions = st.sampled_from([APPROVE, REJECT, sa.Edit({"n": 5}), sa.Respond("a")])
KINDS = {sa.Approve: "approve", sa.Reject: "reject", sa.Edit: "edit", sa.Respond: "respond"}


@given(
    st.lists(
        st.sets(st.sampled_from([*ALL_DECISIONS, "respond"]), min_size=1).map(tuple),
        min_size=1,
        max_size=4,
    ),
    st.lists(decisions, max_size=5),
    st.booleans(),
)
def test_a_list_is_taken_exactly_if_it_fits_in_number_and_kind(
    allowed: list[tuple[str, ...]], given_list: list[Any], as_dict: bool
) -> None:
    interrupt = waiting(*allowed)
    fits = len(allowed) == len(given_list) and all(
        KINDS[type(d)] in words for d, words in zip(given_list, allowed, strict=True)
    )
    given: Any = {f"c{i}": d for i, d in enumerate(given_list)} if as_dict else given_list
    if fits:
        assert list(decisions_for(interrupt, given).values()) == given_list
    else:
        with pytest.raises(sa.InvalidDecision):
            decisions_for(interrupt, given)


@pytest.mark.spec("S1.3.3")
def test_review_configs_have_one_entry_per_distinct_tool() -> None:
    request = sa.ActionRequest("c0", "write", {}, allowed_decisions=("approve",))
    other = sa.ActionRequest("c1", "write", {}, allowed_decisions=("approve",))
    interrupt = sa.Interrupt("hitl", (request, other))
    assert interrupt.review_configs == {"write": {"allowed_decisions": ["approve"]}}
    assert interrupt.tool_call_ids == ["c0", "c1"]


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    "other",
    [
        ("s2", 1, "c", "t", {"a": 1, "b": 2}),
        ("s", 2, "c", "t", {"a": 1, "b": 2}),
        ("s", 1, "d", "t", {"a": 1, "b": 2}),
        ("s", 1, "c", "u", {"a": 1, "b": 2}),
        ("s", 1, "c", "t", {"a": 1, "b": 3}),
    ],
)
def test_the_digest_depends_on_all_that_an_approval_is_bound_to(other: Any) -> None:
    digest = digest_of("s", 1, "c", "t", {"a": 1, "b": 2})
    assert digest == digest_of("s", 1, "c", "t", {"b": 2, "a": 1})
    assert digest != digest_of(*other)


ODD = ["\ud800", "\udfff", "\ud83d\ude00", {"\ud800": 1, "a": [10**40, "é"]}]


@pytest.mark.spec("P4")
@pytest.mark.parametrize("odd", ODD)
def test_half_characters_have_a_digest_of_their_own(odd: Any) -> None:
    digest = digest_of("s", 1, "c", "t", {"b": 1, "a": odd})
    assert digest == digest_of("s", 1, "c", "t", {"a": odd, "b": 1})
    for other in [*ODD, "\\ud800", "\ufffed800", "?", "😀", "\ud83d"]:
        same = digest == digest_of("s", 1, "c", "t", {"b": 1, "a": other})
        assert same == (other == odd)


def test_canonical_json_does_not_depend_on_the_order_of_keys_at_any_depth() -> None:
    assert canonical_json({"b": {"y": 1, "x": 2}, "a": 0}) == b'{"a":0,"b":{"x":2,"y":1}}'
