"""The system call filter that every command in the sandbox runs under (pure).

A classic BPF program, as specified by seccomp(2) and Linux's `filter.rst`, handed to bubblewrap. It
closes what namespaces leave open: keyrings, other processes, kernel features that attackers use and
programs never need, new namespaces, and file modes that would reach the host's disk (setuid,
setgid, devices). Numbers are those of Linux 6.18's `unistd_64.h` and its generic table; newer calls
look unimplemented.

It is built here because no maintained library does: `pyseccomp` is a binding of 2021 to a library
that must be installed separately, and `python3-seccomp` exists on Debian only. The program is a
list of numbers, and its test runs it.
"""

import errno
import struct

from zeroclaw.value import Value

# linux/bpf_common.h: load a word of `struct seccomp_data`, jump by a constant, return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16  # struct seccomp_data
ALLOW, KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000  # linux/seccomp.h
DENY, MISSING = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
NO_FAMILY, NO_ROOM_AHEAD = _ERRNO | errno.EAFNOSUPPORT, _ERRNO | errno.EOPNOTSUPP
_X32 = 0x40000000  # a second call table of x86_64, asm/unistd.h

NEWEST = 466
"""The highest number in the tables (`removexattrat`)."""


class Machine(Value):
    """One CPU architecture; little-endian, 64 bits.

    Attributes:
        audit: Its number in linux/audit.h.
        column: Its index in the tables below.
    """

    audit: int
    column: int


MACHINES = {
    "x86_64": Machine(audit=0xC000003E, column=0),
    "aarch64": Machine(audit=0xC00000B7, column=1),
}

Numbers = tuple[int | None, int | None]

DENIED: dict[str, Numbers] = {
    # keyrings
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # kernel features
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262),
    "vhangup": (153, 58),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
}
"""Calls that no command may make, with their numbers."""

ABSENT: dict[str, Numbers] = {
    # Their arguments are in memory, which a filter can't read; programs fall back to the older
    # calls.
    "clone3": (435, 435),
    "openat2": (437, 437),
    # Memory that belongs to no process, so it could not be counted.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    # Takes from a supply that the whole machine shares (`fs.aio-max-nr`).
    "io_setup": (206, 0),
}
"""Calls that look unimplemented."""

_SET_ID = 0o6000
_DEVICE = 0o020000  # S_IFCHR; S_IFBLK has one more bit, and no other type has this one
_NAMESPACES = 0x7E020000  # CLONE_NEW*, linux/sched.h
_CREATES = 0x00400040  # O_CREAT or __O_TMPFILE; otherwise `open` takes no mode


class _Rule(Value):
    """Decides by an argument: it is tested against each value, and the first match gives the result.

    Attributes:
        test: The comparison of the argument with a value.
        match: The result if a value matches.
        default: The result if none does.
        only_if: An argument and bits; if it has none of these bits, the result is `default`.
    """

    argument: int
    values: tuple[int, ...]
    test: int = _EQUAL
    match: int = ALLOW
    default: int = DENY
    only_if: tuple[int, int] | None = None


def _without(bits: int, argument: int, *, only_if: tuple[int, int] | None = None) -> _Rule:
    """Deny a call whose argument has any of these bits."""
    return _Rule(
        argument=argument, values=(bits,), test=_ANY_BIT, match=DENY, default=ALLOW, only_if=only_if
    )


LIMITED: dict[str, tuple[Numbers, _Rule]] = {
    "chmod": ((90, None), _without(_SET_ID, 1)),
    "fchmod": ((91, 52), _without(_SET_ID, 1)),
    "fchmodat": ((268, 53), _without(_SET_ID, 2)),
    "fchmodat2": ((452, 452), _without(_SET_ID, 2)),
    "mknod": ((133, None), _without(_SET_ID | _DEVICE, 1)),
    "mknodat": ((259, 33), _without(_SET_ID | _DEVICE, 2)),
    "creat": ((85, None), _without(_SET_ID, 1)),
    "open": ((2, None), _without(_SET_ID, 2, only_if=(1, _CREATES))),
    "openat": ((257, 56), _without(_SET_ID, 3, only_if=(2, _CREATES))),
    "clone": ((56, 220), _without(_NAMESPACES, 0)),
    # TIOCSTI and TIOCLINUX inject input into a terminal.
    "ioctl": ((16, 29), _Rule(argument=1, values=(0x5412, 0x541C), match=DENY, default=ALLOW)),
    # The default persona, and the query for the current one.
    "personality": ((135, 92), _Rule(argument=0, values=(0, 0xFFFFFFFF))),
    # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK; other families ignore network namespaces (vsock) or
    # are rare.
    "socket": ((41, 198), _Rule(argument=0, values=(1, 2, 10, 16), default=NO_FAMILY)),
    # Punching holes frees space; other modes could fill a disk before the watch looks. Programs
    # write instead, as on file systems without the call.
    "fallocate": ((285, 47), _Rule(argument=1, values=(3,), default=NO_ROOM_AHEAD)),
}
"""Calls that are allowed with some arguments only; the filter compares the low 32 bits."""


def program(machine: str) -> bytes | None:
    """Return the filter as bubblewrap reads it; None for an unknown architecture."""
    architecture = MACHINES.get(machine)
    if architecture is None:
        return None
    code = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, architecture.audit),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, KILL),
        (_AT_LEAST, 0, 1, NEWEST + 1),
        (_RETURN, 0, 0, MISSING),
    ]
    for table, refusal in ((DENIED, DENY), (ABSENT, MISSING)):
        for numbers in table.values():
            if (number := numbers[architecture.column]) is not None:
                code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refusal)]
    for numbers, rule in LIMITED.values():
        if (number := numbers[architecture.column]) is not None:
            body = _instructions(rule)
            code += [(_EQUAL, 0, len(body), number), *body]
    code.append((_RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def _instructions(rule: _Rule) -> list[tuple[int, int, int, int]]:
    code = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * rule.argument)]
    for value in rule.values:
        code += [(rule.test, 0, 1, value), (_RETURN, 0, 0, rule.match)]
    code.append((_RETURN, 0, 0, rule.default))
    if rule.only_if is None:
        return code
    argument, bits = rule.only_if
    # Without these bits, jump to the last instruction.
    return [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument), (_ANY_BIT, 0, len(code) - 1, bits), *code]
