"""Of many tools, tell the model only of those that fit what is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from .. import kinds
from ..context import RunContext, ToolContext
from ..errors import pass_on
from ..messages import ToolCall, ToolResult
from ..models.base import ModelRequest, defers_tools
from ..runtime.workers import workers
from ..search.lexical import Hit
from ..search.tool_catalog import ToolCatalog
from ..search.vectors import Embedder
from ..search.words import query_words
from ..state import State
from ..text import logger_of, said_by
from ..tools import Tool, ToolOutput, ToolSpec
from .base import Middleware
from .turns import is_summary

logger = logger_of(__name__)

PROMPT = """\
## More tools

You have further tools that are not listed. When none of the listed ones fits, search for one \
before you say that you cannot do it."""

TOOL_SEARCH = "tool_search"
"""In the state's metadata: "found", the words for which each tool was, and the last "words"."""

SEARCH = "search_tools"

_LOCAL = "ToolSearch.messages"  # that were looked at
_FOUND = "found_tools"  # in the metadata of a result of search_tools


class ToolFeedback(Protocol):
    """Where it is kept for what tools were of use: a :class:`~sagents_nb.ConversationStore`."""

    def load_tool_feedback(self) -> Mapping[str, Sequence[str]]:
        """The words of such questions, by tools, the oldest first."""

    def add_tool_feedback(self, queries: Mapping[str, Sequence[str]]) -> None:
        """Keep further ones."""


class ToolSearch(Middleware):
    """Tells the model of those deferred tools alone that fit what is asked.

    Deferred are tools with ``defer_loading``; where no tool says that, all the agent's own. The
    last message of the user is searched once, and the ``limit`` best are offered from then on,
    after the others; they stay for the conversation, so that what providers cache stays good.
    Tools whose score is below ``min_score`` of the best one's are left out. The model may look for
    more with the tool ``search_tools``. What was found stands in the state: a conversation that is
    opened again, or run again from recorded answers, has the same tools. A tool that was called
    with success is found more easily for such questions: as long as the process lives, or for good
    with a ``store``, which has that for each of its owners (``store.scoped(…)``).

    Where the model's provider searches by itself (Claude 4.5 and GPT-5.4, and later), it is sent
    all tools, the deferred marked as such, and no ``search_tools``: so that it need not read
    again what it has cached, and a conversation asks nothing here.

    Else words are compared by their English stems. ``embedder``, a function that gives a vector for
    each of some texts, finds what says it in other words, or in another language, whoever
    the provider is. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for options that make no sense.

    >>> from sagents_nb import Agent, ScriptedModel, ToolSearch, tool
    >>> def tides(port: str) -> str:
    ...     "When the tide is high in a port."
    >>> def cities(country: str) -> str:
    ...     "The largest cities."
    >>> model = ScriptedModel(["At 6."])
    >>> agent = Agent(model, tools=[tides, cities], middleware=[ToolSearch()], defaults=False)
    >>> _ = agent.run("When is high tide in Bergen?")
    >>> [tool.name for tool in model.requests[0].tools]
    ['search_tools', 'tides']
    """

    @kinds.checked(
        limit=kinds.whole(1),
        min_score=kinds.Kind(
            "a number from 0 to 1", lambda value: kinds.number(0).fits(value) and value <= 1
        ),
        embedder=kinds.or_none(kinds.Kind("a function of texts", callable)),
        store=kinds.or_none(
            kinds.having("a ConversationStore", "load_tool_feedback", "add_tool_feedback")
        ),
    )
    def __init__(
        self,
        limit: int = 8,
        min_score: float = 0.3,
        embedder: Embedder | None = None,
        store: ToolFeedback | None = None,
    ) -> None:
        self.limit = limit
        self.min_score = min_score
        self.embedder = embedder
        self.store = store
        self._known: WeakKeyDictionary[Any, _Deferred] = WeakKeyDictionary()

    def system_prompt(self) -> str:
        """That there are more."""
        return PROMPT

    def tools(self) -> list[Tool]:
        """``search_tools``."""

        async def search_tools(query: str, ctx: ToolContext) -> ToolOutput:
            """Find further tools by what they are to do, in a few words. You can call them then."""
            deferred = self._deferred(ctx.run)
            found = await self._search(deferred, query, ctx.state)
            if not found:
                return ToolOutput("No further tool fits that; try other words.")
            lines = [f"- {name}: {_first_line(deferred.specs[name])}" for name in found]
            said = "\n".join(["You can call these now:", *lines])
            return ToolOutput(said, metadata={_FOUND: found})

        return [Tool(search_tools, idempotent=True, display_text="Looking for a tool")]

    def before_model(self, state: State, ctx: RunContext) -> Awaitable[State | None] | State | None:
        """The state with the tools that were found for what was said since the last call."""
        if self._is_left_to_provider(ctx):
            return None
        before = ctx.local.get(_LOCAL)
        ctx.local[_LOCAL] = state.messages
        found: dict[str, str] = {}
        for message in reversed(state.messages.since(before)):
            if message.role == "user" and not is_summary(message):
                return self._discovered(state, message.text, found, ctx)
            for result in message.tool_results:
                found.update(result.metadata.get(_FOUND, {}))
        return _with(state, found) if found else None

    async def _discovered(
        self, state: State, text: str, found: dict[str, str], ctx: RunContext
    ) -> State | None:
        words = " ".join(query_words(text))
        known = state.metadata.get(TOOL_SEARCH, {}).get("words")
        if words != known:  # else it was done before this process began
            found = await self._search(self._deferred(ctx), words, state) | found
        elif not found:
            return None
        return _with(state, found, words)

    async def _search(self, deferred: _Deferred, query: str, state: State) -> dict[str, str]:
        """What fits, by names, that was not found before; and the words for which."""
        hits = await self._hits(deferred, query, list(found_tools(state)))
        words = " ".join(query_words(query))
        return {hit.id: words for hit in hits}

    async def _hits(self, deferred: _Deferred, query: str, known: list[str]) -> list[Hit]:
        catalog = await deferred.prepared()
        options = (query, self.limit, self.min_score, known)
        if self.embedder is None:
            return catalog.search(*options)
        try:
            return await workers.run(catalog.search_by_meaning, *options)
        except BaseException as error:
            pass_on(error)
            logger.warning("The embedder failed, so tools are found by words: %s", said_by(error))
            return catalog.search(*options)

    def before_model_request(self, request: ModelRequest, ctx: RunContext) -> ModelRequest:
        """The request with the tools that were found, after those that are always there.

        Where the provider searches, with all: nothing changes there in a conversation.
        """
        deferred = self._deferred(ctx)
        if request.model == ctx.model.name and self._is_left_to_provider(ctx):
            return replace(request, tools=deferred.all_of(request.tools, found_tools(ctx.state)))
        found = [name for name in found_tools(ctx.state) if name in deferred.specs]
        if deferred.offered is None or deferred.offered[0] != found:
            pinned = [spec for spec in request.tools if spec.name not in deferred.specs]
            deferred.offered = found, (*pinned, *(deferred.specs[name] for name in found))
        return replace(request, tools=deferred.offered[1])

    def after_tool(
        self, call: ToolCall, result: ToolResult, ctx: RunContext
    ) -> Awaitable[None] | None:
        """Remember for what a tool was of use."""
        query = found_tools(ctx.state).get(call.name)
        deferred = self._deferred(ctx)
        catalog = deferred.catalog
        if not query or catalog is None or result.status != "completed":
            return None
        if deferred.answered.get(call.name) == query:  # as of most calls
            return None
        deferred.answered[call.name] = query
        words = catalog.answered(query, call.name)
        return self._keep({call.name: [words]}) if words and self.store is not None else None

    async def _keep(self, queries: dict[str, list[str]]) -> None:
        assert self.store is not None
        try:
            await workers.run(self.store.add_tool_feedback, queries)
        except BaseException as error:
            pass_on(error)
            logger.warning("What a tool was of use for is not kept: %s", said_by(error))

    def _is_left_to_provider(self, ctx: RunContext) -> bool:
        return self.embedder is None and defers_tools(ctx.model)

    def _deferred(self, ctx: RunContext) -> _Deferred:
        known = self._known.get(ctx.agent)
        if known is None or known.tools is not ctx.tools:
            known = self._known[ctx.agent] = _Deferred(ctx, self.embedder, self.store)
        return known


class _Deferred:
    """The tools of an agent that are not told of before they are found."""

    def __init__(
        self, ctx: RunContext, embedder: Embedder | None, store: ToolFeedback | None
    ) -> None:
        self.tools = ctx.tools
        marked = {tool.name: tool.spec for tool in ctx.tools.values() if tool.defer_loading}
        own = {tool.name: tool.spec for tool in ctx.agent.own_tools}
        self.specs: dict[str, ToolSpec] = marked or own
        self.embedder = embedder
        self.store = store
        self.catalog: ToolCatalog | None = None
        self.answered: dict[str, str] = {}  # by tools, the last question
        self.offered: tuple[list[str], tuple[ToolSpec, ...]] | None = None
        self.marked: tuple[list[str], tuple[ToolSpec, ...]] | None = None

    def all_of(self, told: Sequence[ToolSpec], found: Mapping[str, str]) -> tuple[ToolSpec, ...]:
        """All tools, for a provider to find those that were not ``found`` by another before."""
        if self.marked is None or self.marked[0] != list(found):
            tools = [
                replace(spec, defer_loading=True)
                if spec.name in self.specs and spec.name not in found
                else spec
                for spec in told
                if spec.name != SEARCH
            ]
            self.marked = list(found), tuple(tools)
        return self.marked[1]

    async def prepared(self) -> ToolCatalog:
        """The catalog; to make one of a thousand tools takes 70 ms, once."""
        if self.catalog is None:
            made = await workers.run(self._made)
            self.catalog = self.catalog or made
        return self.catalog

    def _made(self) -> ToolCatalog:
        answered: Mapping[str, Sequence[str]] = {}
        if self.store is not None:
            try:
                answered = self.store.load_tool_feedback()
            except Exception as error:
                logger.warning("What tools were of use for is not known: %s", said_by(error))
        return ToolCatalog(self.specs.values(), self.embedder, answered)


def found_tools(state: State) -> Mapping[str, str]:
    """The deferred tools that were found so far, in that order, and for which words."""
    found: Mapping[str, str] = state.metadata.get(TOOL_SEARCH, {}).get("found", {})
    return found


def _with(state: State, found: Mapping[str, str], words: str | None = None) -> State:
    before = state.metadata.get(TOOL_SEARCH, {})
    both = {**found_tools(state), **found}
    return state.put_metadata(TOOL_SEARCH, {"words": words or before.get("words"), "found": both})


def _first_line(spec: ToolSpec) -> str:
    return spec.description.strip().partition("\n")[0]
