"""The two stores look alike: a noun is found under the same name, and a verb takes the same arguments."""

import inspect
from pathlib import Path

import pytest

import hookline.store
from hookline.store.contract import Store
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.store import SqliteStore

STORES = Path(hookline.store.__file__).parent
VERBS = dict(inspect.getmembers(Store, inspect.iscoroutinefunction))


def files(folder: str) -> set[str]:
    return {path.name for path in (STORES / folder).glob("*.py")}


@pytest.mark.parametrize("part", ["", "/access", "/lists", "/measuring", "/migrations"])
def test_both_stores_have_the_same_files(part):
    assert files(f"sqlite{part}") == files(f"postgres{part}")


def arguments(verb: object) -> list[inspect.Parameter]:
    """What a caller gives; a verb's connection comes from the store."""
    found = inspect.signature(verb).parameters.values()
    return [each.replace(annotation=None) for each in found if each.name != "connection"]


@pytest.mark.parametrize("store", [SqliteStore, PostgresStore])
@pytest.mark.parametrize(
    "name", sorted(VERBS.keys() - {"listen"})
)  # its default is a function, equal only to itself
def test_a_verb_takes_the_arguments_of_the_contract(store, name):
    assert arguments(getattr(store, name)) == arguments(VERBS[name])
