"""SECURITY.md is true: every threat has tests, and they are there."""

import re
from pathlib import Path

from security.files import ELSEWHERE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
ROWS = re.findall(r"^\| (T\d\d) \| (.+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)`")


def test_the_threats_are_numbered_without_a_gap():
    assert [number for number, *_ in ROWS] == [f"T{n:02}" for n in range(1, 45)]


def test_every_threat_names_tests_that_exist():
    named = {number: TEST.findall(tests) for number, _, _, tests in ROWS}
    assert [number for number, tests in named.items() if not tests] == []
    every = {test for tests in named.values() for test in tests}
    assert {each for each in every if not (ROOT / each).is_file()} == set()


def test_every_file_of_the_security_folder_is_named():
    found = {str(each.relative_to(ROOT)) for each in Path(__file__).parent.glob("test_*.py")}
    assert found - set(TEST.findall(PAGE)) <= {"tests/security/test_threats.py"}


def test_a_threat_of_tenants_and_receivers_is_tested_by_what_make_test_security_runs():
    chosen = {f"tests/{each}" for each in ELSEWHERE}
    outside = {
        number
        for number, _, _, tests in ROWS
        if not any(each in chosen or each.startswith("tests/security/") for each in TEST.findall(tests))
    }
    # Threats to delivery, which simulation, chaos and the contract of the stores cover.
    assert outside <= {*(f"T{n}" for n in range(27, 39)), "T41"}


def test_every_link_of_the_page_leads_somewhere():
    links = re.findall(r"\]\((?!https?://)([^)#\s]+)", PAGE)
    assert [each for each in links if not (ROOT / each).exists()] == []
