"""Fuzzes one target until its time is over; the process ends with the search (fuzz.py starts it)."""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))

with atheris.instrument_imports(include=["hookline", "jmespath", "idna", "msgspec", "email"]):
    from targets import TARGETS

name = sys.argv.pop(1)
atheris.Setup(sys.argv, TARGETS[name])
atheris.Fuzz()
