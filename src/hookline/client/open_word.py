"""Defines words that a newer server may add to."""

from enum import StrEnum
from typing import Self


class OpenWord(StrEnum):
    """One of the words that this version knows, or a word of a newer server.

    A word that this version does not know is kept as it is: it is equal to its text, and `is_known` is False. So a list
    can be read whatever the server's version is, and `match` needs a last case for what it does not name.
    """

    @property
    def is_known(self) -> bool:
        """Whether this version of hookline knows the word."""
        return self._name_ in type(self).__members__

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = f"unknown:{value}"  # no name of a member has a colon
        word._value_ = value
        return word
