"""JSON that is printed holds nothing that a terminal would obey, and is the same value."""

import json

from hookline.cli.output import print_json

HOSTILE = "\x1b[2J\x9b31m\x7f\x00 \u202e\u2066 \u2028\u2029 \ufeff é 漢字"


def test_what_a_terminal_would_obey_is_escaped(capsys):
    print_json({"body": HOSTILE, HOSTILE: [HOSTILE]})
    text = capsys.readouterr().out
    assert json.loads(text) == {"body": HOSTILE, HOSTILE: [HOSTILE]}
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert "é 漢字" in text
