"""`runlane worker` with the demo's agent, as a child that ends with its parent on Linux.

python -m runlane.worker.demo.worker_process PARENT_PID
"""

import ctypes
import os
import signal
import sys
from typing import Final

from runlane.producer.cli import cli

_PR_SET_PDEATHSIG: Final = 1


def main() -> None:
    """Tie this process to its parent, then serve."""
    parent = int(sys.argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the demo ended before this worker began")
    cli(["worker", "runlane.worker.demo.agents:app"], prog_name="runlane")


if __name__ == "__main__":
    main()
