"""The portal's accent can be read on each paper, and text on it too."""

from itertools import product

import pytest

from hookline.rules.accent import (
    DARK_PAPER,
    LEAST_CONTRAST,
    LIGHT_PAPER,
    Accent,
    accent,
    contrast,
    lightened,
    text_on,
)

CHANNEL = ("00", "33", "66", "99", "cc", "ff")
COLOURS = [f"#{''.join(each)}" for each in product(CHANNEL, repeat=3)]
READABLE = [each for each in COLOURS if contrast(each, LIGHT_PAPER) >= LEAST_CONTRAST]


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        ("#000000", "#ffffff", 21.0),
        ("#ffffff", "#ffffff", 1.0),
        ("#777777", "#ffffff", 4.48),  # the well known pair around the limit
        ("#767676", "#ffffff", 4.54),
        ("#ff0000", "#ffffff", 4.0),
        ("#00ff00", "#ffffff", 1.37),
        ("#0000ff", "#ffffff", 8.59),
        ("#0a0a0a", "#000000", 1.06),  # on the straight part of the curve
    ],
)
def test_contrast_is_what_wcag_says_in_either_order(one, other, ratio):
    assert round(contrast(one, other), 2) == ratio
    assert contrast(other, one) == contrast(one, other)


@pytest.mark.parametrize(
    ("colour", "shown"),
    [
        ("#ffffff", "#ffffff"),
        ("#ff6633", "#ff6633"),  # readable as it is
        ("#000000", "#7f7f7f"),
        ("#0000ff", "#6d6dff"),
        ("#1f5fbf", "#4c80cc"),
    ],
)
def test_a_colour_is_lightened_as_little_as_dark_paper_needs(colour, shown):
    assert lightened(colour, paper=DARK_PAPER) == shown


@pytest.mark.parametrize(
    ("colour", "text"),
    [("#ffffff", "#13171a"), ("#000000", "#ffffff"), ("#ffcc00", "#13171a"), ("#0055aa", "#ffffff")],
)
def test_text_on_a_colour_is_what_has_more_contrast(colour, text):
    assert text_on(colour) == text


def test_an_accent_has_a_colour_for_each_paper_and_text_for_each_colour():
    assert accent("#0000ff") == Accent(
        light="#0000ff", text_on_light="#ffffff", dark="#6d6dff", text_on_dark="#13171a"
    )


def test_whatever_can_be_read_on_light_paper_can_be_read_everywhere():
    assert len(READABLE) > 50
    for colour in READABLE:
        shown = accent(colour)
        for one, other in (
            (shown.light, LIGHT_PAPER),
            (shown.dark, DARK_PAPER),
            (shown.text_on_light, shown.light),
            (shown.text_on_dark, shown.dark),
        ):
            assert contrast(one, other) >= LEAST_CONTRAST, (colour, shown)
