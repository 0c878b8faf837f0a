"""Reads one file in a process of its own: what it was made to break ends here, and nothing else.

    python -P -m zeroclaw.readers.child MEMORY_BYTES CPU_S

On standard input comes the question in one line, then the file to its end; on standard output goes
the answer in one line. Before a byte is looked at the process gives up what it does not need: it
writes no file and starts no process, and its memory and its processor time are bounded by the
kernel; where that lets a plain user do so, it leaves the network as well.
"""

import ctypes
import logging
import os
import resource
import sys

from zeroclaw.readers.documents import read_pdf, read_picture
from zeroclaw.readers.replies import Asked, Reply, read_asked, reply_line
from zeroclaw.readers.text import read_table, read_text

OPEN_FILES = 64
# Of linux/sched.h; see unshare(2).
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
TOO_LARGE = "reading it takes more memory than one file may"


def confine(memory_bytes: int, cpu_s: int) -> None:
    """Give up for good what reading does not need."""
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    ):
        resource.setrlimit(kind, (most, most))


def leave_network() -> bool:
    """Go where there is no network, not even this machine's own; False where that is refused.

    Some kernels grant it to root alone, and some containers not at all. Then the file is read all
    the same: what it could do needs a fault in a library first.
    """
    unshare = ctypes.CDLL(None).unshare
    return any(unshare(flags) == 0 for flags in (NEW_USER | NEW_NETWORK, NEW_NETWORK))


def read(asked: Asked, data: bytes) -> Reply:
    """Return what a reader makes of a file."""
    match asked.reader:
        case "text":
            return read_text(data, asked)
        case "table":
            return read_table(data, asked)
        case "pdf":
            return read_pdf(data, asked)
        case "image":
            return read_picture(data, asked)
        case "none":
            return Reply(failed="there is no reader for it")


def main() -> None:
    """Read one file and answer."""
    leave_network()
    confine(int(sys.argv[1]), int(sys.argv[2]))
    answers = os.dup(1)
    # Libraries warn on both outputs; only the one line is for the parent.
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    logging.disable()
    asked = read_asked(sys.stdin.buffer.readline())
    try:
        line = reply_line(read(asked, sys.stdin.buffer.read()))
    except (MemoryError, RecursionError):
        line = reply_line(Reply(failed=TOO_LARGE))
    with os.fdopen(answers, "wb") as out:
        out.write(line)
    # What a library left for the end is not wanted.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
