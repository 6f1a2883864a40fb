"""The models that a page may choose for its session, by their names: keys never travel."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..models.base import ChatModel
from ..models.named import model_choices
from ..models.resolve import resolve_model
from ..session import Session


class _Chosen(NamedTuple):
    name: str
    model: ChatModel
    own: ChatModel  # which the session had before a page chose


_chosen: WeakKeyDictionary[Session, _Chosen] = WeakKeyDictionary()


def choices(session: Session) -> list[dict[str, Any]]:
    """What can be chosen: the session's own model under the name "", and those of providers.

    Each says what it is to people, which variable for a key it ``missing`` ("" for none), and
    whether it is the ``current`` one.
    """
    current, own = _models_of(session)
    known = {own.name, f"{own.provider}:{own.name}"}
    others = [choice for choice in model_choices() if choice.name not in known]
    return [
        {"name": "", "label": own.name, "missing": "", "current": current == ""},
        *(
            {
                "name": choice.name,
                "label": choice.name,
                "missing": choice.missing,
                "current": current == choice.name,
            }
            for choice in others
        ),
    ]


def choose(session: Session, name: Any) -> None:
    """Go on with the choice of that name; raises Busy while a run is active."""
    if not any(choice["name"] == name for choice in choices(session)):
        raise ValueError("That model is not offered here; `%agent model NAME` sets any other.")
    _, own = _models_of(session)
    model = resolve_model(name) if name else own
    session.replace(agent=session.agent.with_(model=model))
    _chosen[session] = _Chosen(name, model, own)


def _models_of(session: Session) -> tuple[str, ChatModel]:
    """The name of the current choice, and the model that nobody chose in a page."""
    model, chosen = session.agent.model, _chosen.get(session)
    if chosen is None or chosen.model is not model:  # somebody set another since
        return "", model
    return chosen.name, chosen.own
