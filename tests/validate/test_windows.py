"""Windows of reports."""

import pytest

from hookline.errors import Invalid
from hookline.validate.windows import LONGEST_S, window_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1m", 60.0),
        ("15m", 900.0),
        ("1h", 3_600.0),
        ("24h", 86_400.0),
        ("7d", 604_800.0),
        ("90d", LONGEST_S),
        ("2160h", LONGEST_S),
        ("129600m", LONGEST_S),
        ("007d", 604_800.0),
    ],
)
def test_a_window_is_a_number_of_minutes_hours_or_days(text, seconds):
    assert window_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "0m", "0d", "-1h", "-0h", "+1h", "24", "h", "1", "m15"),
        *("91d", "2161h", "129601m", "3650d", "10y", "10 years", "1w", "1mo", "30s", "500ms", "1H", "1D"),
        *(
            "1.5h",
            "1e3m",
            "1_000m",
            "1,000m",
            " 1h",
            "1h ",
            "1 h",
            "1h\n",
            "1h1h",
            "inf",
            "nan",
            "NaNd",
            "P1D",
        ),
        *("٣h", "１h", "1０m", "9999999d", "9" * 5_000 + "d", "\x001h", "1h\x00"),
        *(None, 1, 60.0, True, b"1h", ["1h"]),
    ],
)
def test_any_other_window_is_refused_with_what_is_allowed(text):
    with pytest.raises(Invalid) as refused:
        window_seconds(text)
    assert refused.value.code == "invalid_parameter"
    assert refused.value.pointer == "window"
    assert refused.value.detail == (
        "window is a number of minutes, hours or days from 1m to 90d, such as 15m, 1h, 24h or 7d."
    )


def test_a_refusal_names_the_parameter():
    with pytest.raises(Invalid, match=r"^since is a number"):
        window_seconds("tomorrow", pointer="since")
