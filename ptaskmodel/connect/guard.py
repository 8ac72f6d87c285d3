"""The guard: the parent of a program that must not outlive the simulator.

`connect.guarding` starts it, and it starts the program. It runs as a program of its own, with the
standard library alone:

    python guard.py DESCRIPTOR WORD...

It starts the words in its own process group, and exits with their status. When its standard input
closes, as it does when the simulator ends in whatever way, it kills the group, itself included.
DESCRIPTOR is closed once the program runs; if it cannot start, the reason is written there.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

CANNOT_START = 127


def main(descriptor: int, words: list[str]) -> int:
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    # Handled, unlike ignored, is not inherited: the program gets them as if it were started alone.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    except OSError as fault:
        os.write(descriptor, str(fault.strerror).encode())
        return CANNOT_START
    os.close(descriptor)
    while process.poll() is None:
        ready, _, _ = select.select([sys.stdin.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
        else:
            os.killpg(0, signal.SIGKILL)
    if process.returncode < 0:  # end as it did
        if -process.returncode != signal.SIGKILL:
            signal.signal(-process.returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -process.returncode)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
