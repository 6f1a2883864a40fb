"""pydantic-ai's AG-UI application, with its own FunctionModel.

Usage: hub_pydantic_ai.py PORT
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from _hub import pieces
from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def answer(messages: Any, info: Any) -> AsyncIterator[str]:
    for piece in pieces(messages[-1].parts[-1].content):
        yield piece


agent = Agent(FunctionModel(stream_function=answer), instructions="Be brief.")


async def run(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=agent)


if __name__ == "__main__":
    app = Starlette(routes=[Route("/", run, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
