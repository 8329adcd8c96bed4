"""Commands in a text are marked, and broken between their words only."""

from hookline.dashboard.look.commands import with_commands


def test_commands_are_marked_and_everything_else_is_text():
    assert with_commands("Run `a <b>`, <i>then</i> `c`. A ` alone.") == (
        'Run <code><span class="w">a</span> <span class="w">&lt;b&gt;</span></code>, &lt;i&gt;then&lt;/i&gt; '
        '<code><span class="w">c</span></code>. A ` alone.'
    )
