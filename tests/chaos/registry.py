"""Lists the rows of the fault matrix and the bugs that can be planted.

To add a row, write a module in rows/ (or use one on the same subject) whose `ROWS` names it, as
`{"F99": Row(...)}`: it is found here without being listed anywhere. Its `trial` gets the running `System`,
publishes, does the harm, repairs it, and returns what it found wrong, in words; what it measured goes to
`system.figures`, which are printed with the row. Everything published must reach its end after each trial, and
checker.py looks at the ledgers when all trials are done. A row that needs other workers, endpoints or settings
has its own `Scene`. `everyday=True` makes it part of `make test`.

Its positive control is a bug in a module of bugs/, named in that module's `BUGS` as `{"what-it-does": plant}`
and by the row's `bug`. `plant` runs before hookline does, in every hookline process; `shows` is how the
violation begins that the bug must cause. Try it: `make chaos ROWS=F99 CONTROL=1`.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.chaos.row import Row
    from tests.chaos.study import Study

HERE = Path(__file__).parent


def rows() -> "dict[str, Row]":
    """Every row by its name, in the matrix's order."""
    return _gather("rows", "ROWS")


def studies() -> "dict[str, Study]":
    """Every row that measures, in the same way: see study.py."""
    return _gather("studies", "ROWS")


def bugs() -> dict[str, Callable[[], None]]:
    """How to plant each bug, by its name."""
    return _gather("bugs", "BUGS")


def _gather(folder: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted((HERE / folder).glob("*.py")):
        own = getattr(importlib.import_module(f"tests.chaos.{folder}.{path.stem}"), name)
        if twice := found.keys() & own.keys():
            raise ValueError(f"two of one name: {', '.join(sorted(twice))}")
        found |= own
    return dict(sorted(found.items()))
