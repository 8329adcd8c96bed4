"""What is not seen of a text and changes how it is read is written out, and nothing else."""

import pytest
from markupsafe import Markup

from hookline.dashboard.look.hidden_marks import visible
from hookline.dashboard.look.payload_view import viewed

TURNED = "safe\u202egpj.exe\u2066x\u2069"


def said(text: str) -> str:
    """What a browser shows of it."""
    shown = visible(text)
    return shown.striptags() if isinstance(shown, Markup) else shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TURNED, "safe\\u202egpj.exe\\u2066x\\u2069"),
        ("\x1b[2J\x9b31m\x00\x07\x7f", "\\x1b[2J\\x9b31m\\x00\\x07\\x7f"),
        ("a\u2028b\u2029c\ufeff\u200b", "a\\u2028b\\u2029c\\ufeff\\u200b"),
    ],
)
def test_marks_are_written_out(text: str, shown: str):
    assert said(text) == shown


@pytest.mark.parametrize(
    "text", ["plain", "é ü 漢字 שלום مرحبا", "a\tb\r\nc", "\U0001f468\u200d\U0001f469", "", "\\u202e"]
)
def test_letters_of_every_direction_and_lines_stay_as_they_are(text: str):
    assert visible(text) == text
    assert not isinstance(visible(text), Markup)


def test_what_stands_beside_a_mark_is_still_escaped():
    shown = visible("<b>\u202e</b>&")
    assert shown == '&lt;b&gt;<span class="unseen">\\u202e</span>&lt;/b&gt;&amp;'


def test_what_is_no_text_stays():
    assert visible(7) == 7
    assert visible(None) is None


@pytest.mark.parametrize("is_raw", [False, True])
def test_a_payload_shows_its_marks_and_is_copied_without_change(is_raw: bool):
    payload = f'{{"name":"{TURNED}","lines":"a\u2028b"}}'
    shown = viewed(payload.encode(), is_raw=is_raw)
    assert "\u202e" not in shown.html
    assert "\\u202e" in shown.html
    assert "a\u2028b" in shown.html
    assert "".join(shown.text.split(" ")).replace("\n", "") == payload
