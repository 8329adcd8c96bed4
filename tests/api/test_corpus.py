"""Every case of the corpus that comes in over the API is answered as its row says.

Each test is named by the id of its row in tests/corpus/bad-input.jsonl. A refusal is one problem with its code,
never an error of the server, and leaves the database as it was, row by row. What is accepted arrives byte for byte.
"""

import json
from pathlib import Path

import pytest

from tests.api import corpus_headers, corpus_numbers, corpus_payloads
from tests.api.corpus import CASES
from tests.api.corpus import recorder as recorder  # a fixture

CORPUS = Path(__file__).parent.parent / "corpus" / "bad-input.jsonl"
AREAS = ("payload", "header/name", "number/id/cursor")
FILES = (corpus_payloads, corpus_headers, corpus_numbers)  # importing them fills CASES


def rows() -> list[str]:
    found = (json.loads(line) for line in CORPUS.read_text().splitlines())
    return [row["id"] for row in found if row["area"] in AREAS]


def test_every_row_of_these_areas_is_covered():
    assert sorted(CASES) == sorted(rows())
    assert len(FILES) == len(AREAS)


@pytest.mark.parametrize("id", sorted(CASES))
def test_corpus(service, recorder, id):
    CASES[id](service, recorder)
    assert service.process.process.poll() is None
    assert "Traceback" not in service.process.stderr
