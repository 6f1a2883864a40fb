"""Whose conversations they are: owners are told apart, and nobody is not everybody."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.scope import owner_of

ids = st.text(st.characters(codec=None), min_size=1, max_size=5) | st.integers(-(2**70), 2**70)
owners = ids | st.lists(ids, min_size=1, max_size=3).map(tuple)


@given(owners, owners)
def test_two_owners_are_the_same_only_if_they_are_equal(left: Any, right: Any) -> None:
    keys = {owner_of(SimpleNamespace(owner_id=owner)) for owner in (left, right)}
    assert (len(keys) == 1) == (left == right)
    assert "" not in keys  # which is nobody


def test_a_scope_is_any_object_with_an_owner_id() -> None:
    assert owner_of(SimpleNamespace(owner_id="alice")) == owner_of(sa.Scope(user="alice"))
    number = UUID("12345678123456781234567812345678")
    assert owner_of(SimpleNamespace(owner_id=number)) == owner_of(sa.Scope(user=str(number)))


def test_the_text_1_and_the_number_1_are_two_owners() -> None:
    assert owner_of(sa.Scope(user=1)) != owner_of(sa.Scope(user="1"))


@pytest.mark.parametrize(
    "owner", [None, "", (), True, 1.5, object(), b"alice", {"id": 1}, ("a", None), "x" * 300]
)
def test_an_owner_that_cannot_be_told_apart_is_refused(owner: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="owner_id"):
        owner_of(SimpleNamespace(owner_id=owner))


def test_what_has_no_owner_id_is_no_scope() -> None:
    with pytest.raises(sa.ConfigurationError, match="this str has none"):
        owner_of("alice")


def test_a_scope_does_not_change() -> None:
    with pytest.raises(AttributeError):
        sa.Scope(user="alice").user = "bob"  # type: ignore[misc]
