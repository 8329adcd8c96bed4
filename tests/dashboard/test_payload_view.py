"""A payload is shown as text that says what was published, to the digit."""

import pytest

from hookline.dashboard.look.payload_view import SHOWN_BYTES, payload_file, viewed


def test_only_white_space_moves():
    payload = b'{"b": 1.10000000000000000001,"a":[1E+2,{"x":"a\\"b,:{"}],"b":-0.0,"none":[ ],"no":{}}'
    shown = viewed(payload)
    assert shown.text == (
        '{\n  "b": 1.10000000000000000001,\n  "a": [\n    1E+2,\n    {\n      "x": "a\\"b,:{"\n    }\n  ],\n'
        '  "b": -0.0,\n  "none": [],\n  "no": {}\n}'
    )
    assert shown.is_readable
    assert not shown.is_cut


@pytest.mark.parametrize("payload", [b'"<script>alert(1)</script>"', b"<script>"])
@pytest.mark.parametrize("is_raw", [False, True])
def test_it_is_text_and_never_a_tag(payload: bytes, is_raw: bool):
    assert "<script" not in viewed(payload, is_raw=is_raw).html


@pytest.mark.parametrize("payload", [b"{", b"", b'{"a" 1}', b"[" * 70 + b"]" * 70, b"\xff", b"[" * 50_000])
def test_what_cannot_be_laid_out_is_shown_as_it_was_sent(payload: bytes):
    shown = viewed(payload)
    assert not shown.is_readable
    assert shown.note
    assert shown.text == payload.decode("utf-8", "replace")


def test_as_sent_is_every_byte_of_it():
    payload = b'{ "a" :\t1}\n'
    assert viewed(payload, is_raw=True).text == payload.decode()
    assert not viewed(payload, is_raw=True).is_readable


def test_of_a_large_one_the_beginning_is_shown():
    payload = b'["' + "é".encode() * SHOWN_BYTES + b'"]'
    shown = viewed(payload)
    assert shown.is_cut
    assert shown.size == len(payload)
    assert len(shown.html.encode()) <= SHOWN_BYTES + 100
    assert "64 KiB" in shown.note


def test_indentation_cannot_make_a_page_huge():
    assert not viewed(b"[" * 60 + b",".join([b"1"] * 30_000) + b"]" * 60).is_readable


def test_the_file_is_the_exact_bytes_and_no_page():
    response = payload_file(b"<html>", name='evt_1"\r\nx: y')
    assert response.body == b"<html>"
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"] == 'attachment; filename="evt_1___x__y.json"'
