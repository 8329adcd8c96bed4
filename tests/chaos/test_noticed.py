"""Each planted bug's verdict is read correctly from the report."""

import pytest

from tests.chaos.noticed import Noticed, read

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="test_it_is_noticed_when[M1 settle without token]"/>
<testcase classname="a" name="test_it_is_noticed_when[M2]"><failure message="assert None"/></testcase>
<testcase classname="a" name="test_it_is_noticed_when[M3]"><error message="no such fixture"/></testcase>
<testcase classname="a" name="test_it_is_noticed_when[M4]"><skipped message="no server"/></testcase>
<testcase classname="a" name="test_another[b]"/>
</testsuite></testsuites>"""


def test_each_bug_has_its_verdict(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert read("model", report) == [
        Noticed("model: M1 settle without token", True, "noticed"),
        Noticed("model: M2", False, "NOT NOTICED"),
        Noticed("model: M3", False, "BROKE"),
        Noticed("model: M4", True, "left out: this machine has not the means for it"),
        Noticed("model: test_another[b]", True, "held"),
    ]


@pytest.mark.parametrize("text", [None, "<testsuites/>"])
def test_a_run_without_verdicts_has_broken(tmp_path, text):
    report = tmp_path / "report.xml"
    if text is not None:
        report.write_text(text)
    assert read("model", report) == [Noticed("model", False, "BROKE")]
