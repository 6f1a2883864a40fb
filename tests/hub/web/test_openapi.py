"""The document says what the routes do, and the routes do what it says."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode

from sagents_nb.hub.web.openapi import document
from sagents_nb.hub.web.route import Needs
from sagents_nb.hub.web.routes import ROUTES
from tests.hub.web.served import TOKEN, Served, serving


def test_the_document_is_one_of_openapi() -> None:
    assert list(OpenAPIV31SpecValidator(document(ROUTES)).iter_errors()) == []


def test_the_document_has_every_route_and_no_other(served: Served) -> None:
    told = served.client.get("/openapi.json").json()
    assert told == document(ROUTES)
    named = {(method.upper(), path) for path, each in told["paths"].items() for method in each}
    assert named == {(route.method, route.path) for route in ROUTES if route.kind == "http"}
    for route in ROUTES:
        if route.kind == "http":
            said = told["paths"][route.path][route.method.lower()]
            assert ("security" in said) == (route.needs is not Needs.NOTHING)
            assert str(route.status) in said["responses"]
            assert ("requestBody" in said) == (route.body is not None)


def ask(served: Served, examples: int) -> tuple[list[str], set[int]]:
    """What was answered that the document does not say, and the statuses that were."""
    schema = schemathesis.openapi.from_dict(document(ROUTES))
    thread, clerk = served.thread(), served.thread("clerk")
    there = {
        "agency": [served.agency.id],
        "thread": [thread, clerk],
        "name": ["guide", "clerk"],
        "schedule": [served.schedule],
    }
    wrong: list[str] = []
    seen: set[int] = set()

    def check(operation: Any, mode: GenerationMode) -> None:
        @settings(
            max_examples=examples,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
        def one(case: Any, data: Any) -> None:
            deletes = case.method == "DELETE" or case.path.endswith("/secret")
            if not deletes and data.draw(st.integers(0, 3)):
                for name in case.path_parameters or {}:
                    case.path_parameters[name] = data.draw(st.sampled_from(there[name]))
            response = case.call(
                base_url=served.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=40
            )
            seen.add(response.status_code)
            if response.status_code >= 500:
                wrong.append(f"{case.method} {case.path}: {response.text}")
            case.validate_response(response, checks=CHECKS)

        one()

    for found in schema.get_all_operations():
        operation = found.ok()
        takes_something = "parameters" in operation.definition.raw or operation.body
        for mode in GenerationMode if takes_something else [GenerationMode.POSITIVE]:
            try:
                check(operation, mode)
            except FailureGroup as error:
                wrong.append(f"{operation.label}: {error} {error.exceptions}")
    return wrong, seen


CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]


def test_each_answer_is_one_that_the_document_says(served: Served) -> None:
    wrong, seen = ask(served, 15)
    assert wrong == []
    assert seen >= {200, 201, 202, 400, 401, 404}


def test_an_answer_that_the_document_does_not_say_is_found(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = copy.deepcopy(document(ROUTES))
    path = next(path for path in told["paths"] if path.endswith("/state"))
    del told["paths"][path]["get"]["responses"]["404"]
    told["paths"] = {path: told["paths"][path]}
    monkeypatch.setattr("tests.hub.web.test_openapi.document", lambda _: told)
    wrong, _ = ask(served, 15)
    assert "404" in "".join(wrong)


@pytest.mark.soak
def test_each_of_very_many_answers_is_one_that_the_document_says(tmp_path: Path) -> None:
    with serving(tmp_path / "hub.db") as served:
        assert ask(served, 200)[0] == []
