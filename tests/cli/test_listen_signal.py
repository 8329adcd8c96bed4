"""A signal is noticed on whichever thread it arrives."""

import subprocess
import sys
import textwrap

from server_process import CEILING_S

# The signal reaches a thread that is not the main one while the main one sleeps in read(2): nothing interrupts
# the read. A signal that arrives just before the read looks the same to it, and cannot be timed.
ELSEWHERE = """
    import os, signal, sys, threading
    from pathlib import Path
    from hookline.cli.commands.listen import _Ending

    def interrupt():
        reading = Path(f"/proc/self/task/{threading.main_thread().native_id}/syscall")
        while reading.read_text().split()[0] not in {"0", "63"}:  # read, on either kind of processor
            pass
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    ending = _Ending()
    with ending.by_signals():
        thread = threading.Thread(target=interrupt)
        thread.start()
        ending.wait()
    thread.join()
"""


def test_a_signal_that_interrupts_nothing_ends_the_wait():
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ELSEWHERE)],
        check=False,
        timeout=CEILING_S,
        capture_output=True,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
