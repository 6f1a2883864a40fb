"""What whoever operates a hub sees of it: figures for a scrape, and lines of a log.

Neither has what was said, what tools were given or gave back, a token or a key: names of agencies
and contents stay out of both, and the labels of figures are few.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from ..redaction import without_known
from ..text import logger_of
from .event_log import ThreadEvent
from .vocabulary import (
    AGENT_COMPLETED,
    AGENT_ERROR,
    DELTA,
    MODEL_COMPLETED,
    RUN_CANCELED,
    RUN_PAUSED,
    SPAWNED,
    STATUSES,
    Told,
)

_log = logger_of(__name__)

_ENDS = {
    AGENT_COMPLETED: "completed",
    AGENT_ERROR: "error",
    RUN_CANCELED: "canceled",
    RUN_PAUSED: "paused",
}
_LOGGED = (*STATUSES, SPAWNED)

# Of the data of an event, what is an id or one of a few words.
_SHOWN = {"runId": "run", "reason": "reason", "childThreadId": "child"}

Labels = tuple[tuple[str, str], ...]


def line(_event: str, /, *, level: int = logging.INFO, **fields: object) -> None:
    """Log one event of operation; what is None is left out.

    >>> line("hub.began", address="http://127.0.0.1:8765")
    """
    if _log.isEnabledFor(level):
        known = {name: value for name, value in fields.items() if value is not None}
        text = " ".join([_event, *(f"{name}={_word(value)}" for name, value in known.items())])
        _log.log(level, text, extra={"operation": text})


def _word(value: object) -> str:
    """A value in one word, or in quotes as JSON has it."""
    text = str(value)
    plain = text.isascii() and text.isprintable() and not set(text) & set(' "=')
    return text if text and plain else json.dumps(text)


class LineFormat(logging.Formatter):
    """One line an event: when, how grave, what it is, and ``name=value``.

    Of what others log only the first line, and of an error where it was raised: what follows may
    be what somebody said.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        begin = f"ts={at.removesuffix('+00:00')}Z level={record.levelname.lower()}"
        said = getattr(record, "operation", None)
        if said is not None:
            return f"{begin} event={said}"
        text = without_known(record.getMessage()).partition("\n")[0]
        told = f"{begin} event=log logger={record.name} message={json.dumps(text)}"
        if record.exc_info and record.exc_info[0] is not None:
            kind, _, trace = record.exc_info
            told += f" error={kind.__name__} at={json.dumps(_places(trace))}"
        return told


def _places(trace: TracebackType | None) -> str:
    """The places of a traceback, the innermost first."""
    found: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append(f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return " < ".join(found[::-1][:20])


class Figures:
    """What happened in this process, counted; ``gauges`` are asked for what is now.

    >>> figures = Figures()
    >>> figures.gauge("sagents_hub_active_runs", "Runs that are active.", lambda: 2)
    >>> figures.count("sagents_hub_requests_total", method="GET", status=200)
    >>> [line for line in figures.text().splitlines() if line.startswith("sagents_hub_a")]
    ['sagents_hub_active_runs 2']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[Labels]] = {name: Counter() for name in _COUNTERS}
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._began = time.time()

    def gauge(self, name: str, words: str, ask: Callable[[], float]) -> None:
        """Have ``ask`` called at each scrape; it must be cheap."""
        self._gauges[name] = words, ask

    def count(self, _name: str, _amount: float = 1, /, **labels: object) -> None:
        """Something happened; labels have few values."""
        key = tuple((label, str(value)) for label, value in labels.items())
        with self._lock:
            self._counts[_name][key] += _amount  # type: ignore[assignment]

    def hear(self, agency_id: str, event: ThreadEvent | None) -> None:
        """An event of a thread was told."""
        if event is None or event.type == DELTA:
            return
        self.count("sagents_hub_events_total")
        self.take((event.type, event.data))
        if event.type in _LOGGED:
            about = {_SHOWN[k]: v for k, v in event.data.items() if k in _SHOWN}
            line(event.type, agency=agency_id, thread=event.thread_id, seq=event.seq, **about)

    def take(self, told: Told) -> None:
        """Count what an event tells: of threads, and of conversations that are kept nowhere."""
        type, data = told
        if type in _ENDS:
            self.count("sagents_hub_runs_ended_total", status=_ENDS[type])
        elif type == MODEL_COMPLETED:
            usage: Mapping[str, Any] = data.get("usage", {})
            self.count("sagents_hub_model_calls_total")
            for direction, name in (("input", "inputTokens"), ("output", "outputTokens")):
                self.count("sagents_hub_tokens_total", usage.get(name, 0), direction=direction)
            self.count("sagents_hub_cost_usd_total", usage.get("costUsd", 0.0))

    def text(self) -> str:
        """All of it, in Prometheus's text format."""
        lines: list[str] = []
        with self._lock:
            counts = {name: dict(found) for name, found in self._counts.items()}
        for name, words in _COUNTERS.items():
            lines += [f"# HELP {name} {words}", f"# TYPE {name} counter"]
            samples = counts[name] or ({} if name in _LABELLED else {(): 0})
            for labels, value in sorted(samples.items()):
                shown = ",".join(f'{label}="{text}"' for label, text in labels)
                lines.append(f"{name}{{{shown}}} {value}" if shown else f"{name} {value}")
        gauges = {**self._gauges, **_process(self._began)}
        for name, (words, ask) in gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", f"{name} {ask()}"]
        return "\n".join([*lines, ""])


_COUNTERS = {
    "sagents_hub_requests_total": "Requests that were answered, by route and status.",
    "sagents_hub_runs_ended_total": "Runs that ended, or stopped for something, by status.",
    "sagents_hub_model_calls_total": "Answers of models.",
    "sagents_hub_tokens_total": "Tokens that models took and gave.",
    "sagents_hub_cost_usd_total": "What those answers cost whose models say it, in US dollars.",
    "sagents_hub_events_total": "Events of threads that were kept and told.",
    "sagents_hub_schedule_runs_total": "Times of schedules, by what became of them.",
}
_LABELLED = (
    "sagents_hub_requests_total",
    "sagents_hub_runs_ended_total",
    "sagents_hub_tokens_total",
    "sagents_hub_schedule_runs_total",
)


def _process(began: float) -> dict[str, tuple[str, Callable[[], float]]]:
    """Of the process, by the names that Prometheus's own clients use."""
    figures: dict[str, tuple[str, Callable[[], float]]] = {
        "process_start_time_seconds": ("When it began, in seconds since 1970.", lambda: began),
        "process_cpu_seconds_total": ("Seconds of processors it has used.", time.process_time),
    }
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        open_files = len(os.listdir("/proc/self/fd"))
    except OSError:  # not on Linux
        return figures
    memory = pages * os.sysconf("SC_PAGE_SIZE")
    figures["process_resident_memory_bytes"] = ("Memory that it has.", lambda: memory)
    figures["process_open_fds"] = ("Files and sockets that it has open.", lambda: open_files)
    return figures
