"""What is handed from one to another is frozen: nobody changes it behind the back of the other."""

from __future__ import annotations

import importlib
import pkgutil

import msgspec

# Made and filled by one function, which hands it out once.
FILLED = {
    "sagents_nb.loop.config.Outcome",
    "sagents_nb.session.opening.OpenedConversation",
    "sagents_nb.session.opening.RestoredSession",
    "sagents_nb.store.folding.Folded",
}


def structs_of(package: str) -> dict[str, type[msgspec.Struct]]:
    found: dict[str, type[msgspec.Struct]] = {}
    parent = importlib.import_module(package)
    names = [package] if not hasattr(parent, "__path__") else [
        f"{package}.{module.name}" for module in pkgutil.iter_modules(parent.__path__)
    ]  # fmt: skip
    for name in names:
        for value in vars(importlib.import_module(name)).values():
            if (
                isinstance(value, type)
                and issubclass(value, msgspec.Struct)
                and value.__module__ == name
                and not value.__name__.startswith("_")  # read by the one who decodes it
            ):
                found[f"{name}.{value.__qualname__}"] = value
    return found


def test_structs_of_loop_session_store_and_interrupts_are_frozen() -> None:
    parts = [
        structs_of(f"sagents_nb.{name}") for name in ("loop", "session", "store", "interrupts")
    ]
    assert all(parts), "each has some"
    structs = {name: struct for part in parts for name, struct in part.items()}
    thawed = {name for name, struct in structs.items() if not struct.__struct_config__.frozen}
    assert thawed == FILLED
