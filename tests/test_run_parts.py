"""The parts of the suite: every file is in one of them, and every test's result is reported."""

import os
from collections import Counter
from pathlib import Path

from tests import run_parts
from tests.run_parts import (
    ABOUT_SECURITY,
    FAULTS,
    PARTS,
    Case,
    Part,
    Result,
    Runner,
    Slice,
    cases,
    slices,
    summary,
)

TESTS = Path(run_parts.__file__).parent


def test_every_file_of_tests_is_in_exactly_one_part():
    files = Counter(file for each in slices(fast=False) for file in each.files)
    assert files == Counter(TESTS.rglob("test_*.py"))


def test_a_folder_that_no_part_names_is_a_part_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "new" / "deeper").mkdir(parents=True)
    file = tmp_path / "new" / "deeper" / "test_it.py"
    file.touch()
    monkeypatch.setattr(run_parts, "TESTS", tmp_path)
    assert Slice("new", [file]) in slices(fast=False)


def test_the_faults_are_begun_first_and_are_not_in_the_fast_set():
    assert slices(fast=False)[0] == FAULTS
    assert FAULTS not in slices(fast=True)


def test_the_fast_set_has_the_whole_of_its_parts():
    fast = {file for each in slices(fast=True) for file in each.files}
    named = [folder for part in PARTS if part.is_fast for folder in part.folders]
    assert fast == {file for folder in named for file in run_parts.tests_in(folder)}


def test_what_is_about_security_is_a_part_of_the_whole():
    chosen = [file for each in run_parts.security() for file in each.files]
    assert len(chosen) == len(set(chosen)) == len(ABOUT_SECURITY) + len(run_parts.tests_in("security"))
    assert set(chosen) <= {file for each in slices(fast=False) for file in each.files}
    assert all((TESTS / each).is_file() for each in ABOUT_SECURITY)


def test_the_files_of_a_part_are_dealt_out_evenly():
    part = Part("some", ("rules",), 3)
    sizes = [len(each.files) for each in run_parts.dealt(part)]
    assert len(sizes) == 3
    assert max(sizes) - min(sizes) <= 1


def test_no_slice_is_without_files():
    assert all(each.files for each in slices(fast=False) if each != FAULTS)
    assert len(run_parts.dealt(Part("few", ("store",), 50))) == len(run_parts.tests_in("store"))


TEXT = """
import pytest

def test_good():
    pass

def test_bad():
    assert 1 == 2

@pytest.mark.skip(reason="no such machine")
def test_absent():
    pass
"""


def test_what_became_of_each_test_is_read_and_told(tmp_path, capsys):
    file = tmp_path / "test_three.py"
    file.write_text(TEXT)
    [result] = Runner(fast=False).run([Slice("three", [file])], at_once=1)
    assert [(case.name.rpartition("::")[2], case.skipped, case.failed) for case in result.cases] == [
        ("test_good", None, None),
        ("test_bad", None, "assert 1 == 2"),
        ("test_absent", "no such machine", None),
    ]
    assert not result.passed
    assert result.cpu_seconds > 0
    assert "assert 1 == 2" in capsys.readouterr().out, "what pytest printed is shown"


def test_a_part_that_ends_without_a_report_has_failed(tmp_path):
    [result] = Runner(fast=False).run([Slice("none", [tmp_path / "test_missing.py"])], at_once=1)
    assert (result.passed, result.cases) == (False, [])
    assert "failed: none, without a report" in summary([result], 1.0)


def test_parts_run_at_once(tmp_path):
    """Each end of a pipe is opened by another part, and waits for the other end: one after the other they would not end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    files = [tmp_path / "test_reader.py", tmp_path / "test_writer.py"]
    for file, mode in zip(files, ("r", "w"), strict=True):
        file.write_text(f"def test_it():\n    open({str(pipe)!r}, {mode!r}).close()\n")
    results = Runner(fast=False).run([Slice(file.stem, [file]) for file in files], at_once=2)
    assert [each.passed for each in results] == [True, True]


def test_the_slowest_tests_of_all_parts_are_told():
    many = [Case(f"t::{n}", float(n)) for n in range(50)]
    results = [Result("one", True, 1.0, 1.0, many[::2]), Result("two", True, 1.0, 1.0, many[1::2])]
    told = [line for line in summary(results, 2.0) if "t::" in line]
    assert told == [f"{n:7.1f} s  t::{n}" for n in range(49, 29, -1)]


def test_without_a_report_there_are_no_cases(tmp_path):
    assert cases(tmp_path / "report.xml") == []
