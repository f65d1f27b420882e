"""Become the server, in a way that it ends with the process that launched it.

Run as a file by an isolated interpreter, standard library only:
`python -I -S trampoline.py prctl|pipe PARENT_PID BINARY ARG...`. Standard input is a
pipe whose other end only the launching process has.
"""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def _end_with_parent(parent: int) -> None:
    """Have the kernel terminate this process, and what it executes, when its parent ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("the launching process ended before the server began")


def _watch_parent() -> None:
    """Leave a child behind that terminates this process when standard input is closed."""
    server = os.getpid()
    if os.fork() != 0:
        return
    os.read(0, 1)
    if os.getppid() == server:
        os.kill(server, signal.SIGTERM)
    os._exit(0)


def main() -> None:
    """Tie this process to its parent, then replace it by the server."""
    watch, parent, *command = sys.argv[1:]
    if watch == "prctl":
        _end_with_parent(int(parent))
    else:
        _watch_parent()
    os.execv(command[0], command)  # noqa: S606 (no shell is the point)


if __name__ == "__main__":
    main()
