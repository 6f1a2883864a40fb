"""What the panel knows of marimo. That it works there: see tests/browser/test_marimo.py."""

from __future__ import annotations

from comm import create_comm
from marimo._plugins.ui._impl.comm import MarimoComm, MarimoCommManager

import sagents_nb as sa
from sagents_nb.notebook import marimo
from tests.talking import session_of


def test_where_marimo_is_merely_installed_views_share_a_model() -> None:
    assert not marimo.is_here()
    session = session_of("One.")
    assert sa.ChatView(session).source == sa.TodoView(session).source != ""


def test_a_comm_of_marimos_is_closed_with_its_cell_and_others_are_not() -> None:
    comm = MarimoComm("m1", MarimoCommManager(), "jupyter.widgets")
    assert not marimo.has_closed(comm)
    comm.close()
    assert marimo.has_closed(comm)
    other = create_comm()
    other.close()
    assert not marimo.has_closed(other)
