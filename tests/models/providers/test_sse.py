"""Server-sent events, in chunks of any size."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagents_nb.models.providers import streaming
from sagents_nb.models.providers.streaming import Event, EventDecoder
from tests.models.loopback import RECORDED, recorded

MIXED = (
    b"\xef\xbb\xbf: a comment\r\n"
    b'event: one\r\ndata: {"a":1}\r\n\r\n'
    b"data:no space\rdata: two lines\r\r"
    b"id: 7\nretry: 10\nunknown: x\ndata\n\n"
    b"event: empty\n\n"
    b"data: \xc3\xa4\xe2\x80\xa8\n\n"
    b"event: last\ndata: 1"
)
EVENTS = [
    ("one", b'{"a":1}'),
    ("", b"no space\ntwo lines"),
    ("", "ä\u2028".encode()),
    ("last", b"1"),
]


def decode(chunks: list[bytes]) -> list[Event]:
    decoder = EventDecoder()
    return [e for chunk in chunks for e in decoder.feed(chunk)] + decoder.end()


def split(body: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(body), *cuts})
    return [body[a:b] for a, b in itertools.pairwise(edges)]


@given(st.lists(st.integers(0, len(MIXED)), max_size=20))
def test_chunks_do_not_matter(cuts: list[int]) -> None:
    assert decode(split(MIXED, cuts)) == EVENTS


def test_single_bytes_do_not_matter() -> None:
    assert decode([bytes([b]) for b in MIXED]) == EVENTS


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_in_single_bytes_gives_the_events_of_the_whole(name: str) -> None:
    body = recorded(name)
    assert decode([bytes([b]) for b in body]) == decode([body])


@given(st.binary())
def test_any_bytes_are_taken(body: bytes) -> None:
    decode([body])


def test_a_line_without_an_end_is_kept_in_pieces_and_joined_once() -> None:
    """Joined at each chunk, these 40 MB would be copied ten thousand times."""
    decoder = EventDecoder()
    for _ in range(40_000):
        assert decoder.feed(b"data:" + b"x" * 1000) == []
    assert len(decoder.feed(b"\n\n")[0][1]) == 40_000 * 1005 - 5


@pytest.mark.parametrize("piece", [b"x" * 100, b"data: " + b"x" * 100 + b"\n"])
def test_an_event_beyond_the_limit_is_refused(
    piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "LONGEST_EVENT", 1000)
    decoder = EventDecoder()
    for _ in range(3):
        decoder.feed(piece * 3 + b"\n\n")  # one that ends is none of those that come
    for _ in range(1000 // len(piece)):
        decoder.feed(piece)
    with pytest.raises(ValueError, match="one event has over 1,000 bytes"):
        decoder.feed(piece)
