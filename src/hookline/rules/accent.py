"""Decides how the portal's accent colour is shown on each paper, so that it can be read.

Contrast is what WCAG 2 defines: the ratio of the relative luminances of two colours, from 1 to 21. A colour is `#rrggbb`.
"""

import msgspec

LIGHT_PAPER = "#fbfbf9"
DARK_PAPER = "#13171a"
LEAST_CONTRAST = 4.5  # WCAG AA for text

_INKS = ("#13171a", "#ffffff")  # one of them has LEAST_CONTRAST on any accent that has it on its paper
_STEPS = 256  # from a colour to white: as many as a channel has


class Accent(msgspec.Struct, frozen=True, kw_only=True):
    """The accent on light and on dark paper, each with the colour of text that stands on it."""

    light: str
    text_on_light: str
    dark: str
    text_on_dark: str


def accent(colour: str) -> Accent:
    """How a colour that can be read on light paper is shown on both."""
    dark = lightened(colour, paper=DARK_PAPER)
    return Accent(light=colour, text_on_light=text_on(colour), dark=dark, text_on_dark=text_on(dark))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def lightened(colour: str, *, paper: str) -> str:
    """The colour, mixed with as little white as makes it readable on dark paper."""
    channels = _channels(colour)
    mixes = (
        "#" + "".join(f"{round(each + (255 - each) * step / _STEPS):02x}" for each in channels)
        for step in range(_STEPS + 1)
    )
    return next(mixed for mixed in mixes if contrast(mixed, paper) >= LEAST_CONTRAST)


def text_on(colour: str) -> str:
    """The colour of text on this one: near black or white, whichever has more contrast."""
    return max(_INKS, key=lambda ink: contrast(ink, colour))


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(each / 255) for each in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
