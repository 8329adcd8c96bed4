"""Reads texts of SQLite that are not UTF-8.

SQLite keeps whatever bytes it is given as a text. One such text would keep every row of a list from being read.
"""

import sqlite3


def is_unreadable(error: sqlite3.Error) -> bool:
    """Whether a text that is not UTF-8 kept a row from being read."""
    return isinstance(error, sqlite3.OperationalError) and "decode to UTF-8" in str(error)


def read_all_texts(connection: sqlite3.Connection) -> None:
    """From now on such texts are read with replacements; that is slower, so it begins with the first one met."""
    connection.text_factory = readable


def readable(text: bytes) -> str:
    """The text, with U+FFFD for what is not UTF-8."""
    return text.decode("utf-8", "replace")
