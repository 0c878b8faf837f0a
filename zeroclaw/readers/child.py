"""Reads one file in a separate process, so that an exploit in the file can't harm the daemon.

    python -P -m zeroclaw.readers.child MEMORY_BYTES CPU_S

Standard input has the request on one line, followed by the file. Standard output gets the answer on
one line. Before it reads a byte, the process gives up rights that it does not need: it can write no
file and start no process, and the kernel limits its memory and processor time. Where the kernel
permits it to an ordinary user, the process also leaves the network.
"""

import ctypes
import logging
import os
import resource
import sys
from collections.abc import Callable

from zeroclaw.codec import decode
from zeroclaw.readers.documents import read_pdf, read_picture
from zeroclaw.readers.formats import Reader
from zeroclaw.readers.replies import ReadRequest, Reply, line_of
from zeroclaw.readers.text import read_mail, read_table, read_text

OPEN_FILES = 64
# From linux/sched.h; see unshare(2).
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
_READERS: dict[Reader, Callable[[bytes, ReadRequest], Reply]] = {
    "text": read_text,
    "table": read_table,
    "mail": read_mail,
    "pdf": read_pdf,
    "image": read_picture,
}
TOO_LARGE = "reading it takes more memory than one file may"


def confine(memory_bytes: int, cpu_s: int) -> None:
    """Irrevocably give up all rights that reading does not need."""
    for kind, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    ):
        resource.setrlimit(kind, (limit, limit))


def leave_network() -> bool:
    """Move to a namespace without any network, not even loopback; False if that is not permitted.

    Some kernels permit it only to root, and some containers not at all. The file is read anyway: to
    use the network it would have to exploit a bug in a library first.
    """
    unshare = ctypes.CDLL(None).unshare
    return any(unshare(flags) == 0 for flags in (NEW_USER | NEW_NETWORK, NEW_NETWORK))


def main() -> None:
    """Read one file and answer."""
    leave_network()
    confine(int(sys.argv[1]), int(sys.argv[2]))
    answers = os.dup(1)
    # Libraries may print warnings; the parent must get only the one line.
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    logging.disable()
    request = decode(ReadRequest, sys.stdin.buffer.readline())
    try:
        line = line_of(_READERS[request.reader](sys.stdin.buffer.read(), request))
    except (MemoryError, RecursionError):
        line = line_of(Reply(failed=TOO_LARGE))
    with os.fdopen(answers, "wb") as stream:
        stream.write(line)
    os._exit(0)  # without the exit handlers that libraries registered


if __name__ == "__main__":
    main()
