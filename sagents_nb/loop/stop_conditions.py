"""When tools end a run: by what was asked for, or by failing again and again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import FailuresExceeded, UntilToolNotCalled
from ..messages import NOT_RUN, ToolResult
from .config import LoopConfig
from .invoke import Executed


class StopConditions:
    """What the results of one run come to; ``tool_result`` is the one it was run for."""

    def __init__(self, config: LoopConfig) -> None:
        self.tool_result: ToolResult | None = None
        self._config = config
        self._failures = 0

    def reached(self, results: Iterable[ToolResult]) -> str | None:
        """The status if a tool that ends the run was run: the first in call order counts."""
        config = self._config
        if not config.until_tool:
            return None
        for result in results:
            if result.name not in config.until_tool or NOT_RUN in result.metadata:
                continue
            if config.until_success and result.is_error:
                continue
            self.tool_result = result
            return "completed"
        return None

    def count_failures(self, done: Sequence[Executed]) -> None:
        """Count a turn, or its calls; raises FailuresExceeded if too many in a row have failed.

        Of calls that ran side by side one that did not fail is enough to begin anew.
        """
        config = self._config
        failed = [item.result for item in done if item.status == "failed"]
        if not failed:
            self._failures = 0
        elif config.failures == "turns":
            self._failures += 1
        else:
            self._failures = self._failures + len(failed) if len(failed) == len(done) else 0
        if config.max_failures and self._failures >= config.max_failures:
            if config.until_success:
                return
            raised = [item.raised for item in done if item.raised is not None]
            said = failed[-1].text.rstrip(" .\n")[:200]
            raise FailuresExceeded(
                f"Tools failed in {self._failures} {config.failures} in a row, last "
                f"{failed[-1].name}: {said}; run again with the result's state to continue."
            ) from (raised[-1] if raised else None)

    def check(self) -> None:
        """Raise UntilToolNotCalled if the run was to end with a tool and did not."""
        if self._config.until_tool and self.tool_result is None:
            names = ", ".join(sorted(self._config.until_tool))
            raise UntilToolNotCalled(
                f"The model ended without calling {names}; ask for it in the prompt, or run again."
            )
