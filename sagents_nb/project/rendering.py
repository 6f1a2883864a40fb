"""From the templates to the files of one project.

A template is the file itself, with ``$names`` to fill in. A line that ends with ``#+owner`` is
for projects whose conversations have owners, one with ``#-owner`` for those without, and the
like for ``existing``, a scope that was there already.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Template

from .existing_scope import parts
from .options import Options

TEMPLATES = Path(__file__).with_name("templates")

_MARKED = re.compile(r" ?#([+-])(\w+)$")
# With which keys in the environment a model of that kind works.
_EXTRAS = {"anthropic": "anthropic", "openai": "openai", "openai-chat": "openai"}


def rendered(options: Options) -> dict[Path, str]:
    """The texts of a project's files, by their paths in its folder."""
    flags = {"owner": options.has_owner, "existing": bool(options.scope)}
    values = _values(options)
    files = {}
    for template in sorted(TEMPLATES.rglob("*.in")):
        path = template.relative_to(TEMPLATES).with_suffix("")
        if path.parts[0] == "package":
            path = Path(options.package, *path.parts[1:])
        if path.name == "scope.py" and not options.has_owner:
            continue
        text = template.read_text(encoding="utf-8")
        lines = "\n".join(_chosen(text.splitlines(), flags)) + "\n"
        files[path] = Template(lines).substitute(values)
    return files


def _chosen(lines: list[str], flags: dict[str, bool]) -> Iterator[str]:
    for line in lines:
        mark = _MARKED.search(line)
        if mark is None:
            yield line
        elif flags[mark[2]] is (mark[1] == "+"):
            yield line[: mark.start()]


def _values(options: Options) -> dict[str, str]:
    has_owner = options.has_owner
    extras = ["notebook", "store", "testing", _EXTRAS.get(options.model.partition(":")[0], "")]
    return {
        "alice": "ALICE" if has_owner else "",
        "alice_first": "ALICE, " if has_owner else "",
        "then_alice": ", ALICE" if has_owner else "",
        "scope": "scope" if has_owner else "",
        "scope_first": "scope, " if has_owner else "",
        "then_scope": ", scope" if has_owner else "",
        "distribution": options.package.replace("_", "-"),
        "extras": ",".join(sorted(filter(None, extras))),
        "import_scope": _import_of(options) if options.scope else "",
        "model": options.model,
        "model_literal": json.dumps(options.model, ensure_ascii=False),
        "owner_field": options.owner_field,
        "owner_type": options.owner_type,
        "package": options.package,
        "table_prefix": options.table_prefix,
        "title": options.package.replace("_", " ").capitalize(),
        "variable": options.package.upper(),
    }


def _import_of(options: Options) -> str:
    module, name = parts(options.scope)
    top = options.folder / module.partition(".")[0]
    # Imports of the project's own come after a blank line.
    own = top.is_dir() or top.with_suffix(".py").is_file()
    alias = "" if name == "Scope" else " as Scope"
    return "\n" * own + f"from {module} import {name}{alias}"
