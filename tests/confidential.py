"""Finds what must not be seen in what a server prints."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

# Settings whose values are confidential; a list has several.
SETTINGS = ("HOOKLINE_API_KEY", "HOOKLINE_SECRET_KEY", "HOOKLINE_SMTP_PASSWORD")
SHORTEST = 8  # a shorter value is in many words
# A signing secret, and a key that a server made; tests write shorter ones by hand.
MADE = re.compile(r"whs[ek]c?_[A-Za-z0-9+/=]{32,}|hlk_[A-Za-z0-9_-]{24,}")
FIRST_KEY = re.compile(r"^hlk_\S+\n", re.MULTILINE)  # printed once, to standard output, on purpose


def confidential(env: Mapping[str, str], arguments: Iterable[str]) -> set[str]:
    """The confidential values that a process is started with."""
    found = {part for name in SETTINGS for part in env.get(name, "").split(",")}
    for text in (env.get("HOOKLINE_DATABASE", ""), *arguments):
        if text.startswith("postgres") and "@" in text:
            found.add(unquote(urlsplit(text).password or ""))
    return {each for each in found if len(each) >= SHORTEST}


def revealed(output: str, secrets: Iterable[str]) -> list[str]:
    """The confidential values in what was printed, and what looks like a key or a secret that was made."""
    made = MADE.findall(FIRST_KEY.sub("", output))
    return sorted({each for each in secrets if each in output} | set(made))
