"""What is printed of an attempt: everything that helps, and nothing that could harm a terminal."""

import pytest

from hookline.cli.printing.attempts import MOST_CHARACTERS, MOST_LINES, attempt_lines

ATTEMPT = {
    "number": 2,
    "at": "2026-01-31T12:00:00Z",
    "status": 503,
    "duration_ms": 12.3,
    "phases_ms": {"dns": None, "connect": 1.25, "tls": 20.4, "first_byte": 1_234.5},
    "error": {"kind": "http_5xx", "detail": "try later\x1b[31m"},
    "request": {"url": "https://hooks.example.com/", "headers": {"webhook-id": "evt_1", "x-key": "***"}},
    "response_headers": {"retry-after": "5"},
    "response_body": "first\x07\r\nsecond",
    "response_truncated": False,
    "final_url": None,
    "late": False,
}


def printed(**fields):
    return list(attempt_lines({**ATTEMPT, **fields}))


def test_an_attempt_shows_error_phases_headers_and_body():
    assert printed() == [
        "error     http_5xx: try later\\x1b[31m",
        "url       https://hooks.example.com/",
        "phases    connect 1.2 ms, tls 20 ms, first byte 1,234 ms",
        "sent      webhook-id: evt_1",
        "          x-key: ***",
        "received  retry-after: 5",
        "body      first\\x07",
        "          second",
    ]


def test_a_long_body_is_cut_and_its_length_is_said():
    lines = printed(response_body="x" * (MOST_CHARACTERS + 1), response_truncated=True)
    assert lines[-3] == f"body      {'x' * MOST_CHARACTERS}"
    assert lines[-2:] == [
        "          … 2,000 of 2,001 characters shown; --json prints all that were kept",
        "          … the response was longer; its first 2,001 characters were kept",
    ]


def test_a_body_of_many_lines_is_cut():
    lines = printed(response_body="\n".join("line" for _ in range(MOST_LINES + 1)))
    assert lines.count("          line") == MOST_LINES - 1
    assert lines[-1] == "          … 199 of 204 characters shown; --json prints all that were kept"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"response_body": ""}, "body      empty"),
        ({"final_url": "https://other.example/"}, "final     https://other.example/"),
        (
            {"late": True},
            "late      it was settled by a worker that had lost the lane, and counts for nothing",
        ),
        ({"error": {"kind": "timeout", "detail": None}}, "error     timeout"),
        ({"response_body": "a\u2028b\x85"}, "body      a\\u2028b\\x85"),
    ],
)
def test_what_is_special_is_said(fields, line):
    assert line in printed(**fields)


def test_an_accepted_attempt_has_no_headers():
    lines = printed(
        error=None, status=200, request={"url": "https://a.example/", "headers": None}, response_headers=None
    )
    assert [line.split()[0] for line in lines] == ["url", "phases", "body", "second"]
