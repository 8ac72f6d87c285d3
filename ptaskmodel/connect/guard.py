"""The guard: the parent of a program that must not outlive the simulator.

`connect.transport` starts the guard, and the guard starts the program. The guard is a
program of its own and uses only the standard library:

    python guard.py DESCRIPTOR WORD...

It runs the command WORD... in its own process group, and exits with its status. Its standard input
closes when the simulator ends in any way; it then kills the group, itself included. It closes
DESCRIPTOR once the command runs; if the command cannot start, it first writes the reason there.
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
