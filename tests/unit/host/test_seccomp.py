"""The filter of system calls: the program is run here, by the rules of seccomp(2)."""

import ctypes
import errno
import struct
from ctypes.util import find_library

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.host.seccomp import (
    ABSENT,
    ALLOW,
    DENIED,
    DENY,
    KILL,
    LIMITED,
    MACHINES,
    MISSING,
    NEWEST,
    NO_FAMILY,
    NO_ROOM_AHEAD,
    program,
)

COLUMNS = {name: machine.column for name, machine in MACHINES.items()}
machines = pytest.mark.parametrize("machine", sorted(MACHINES))


def judged(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Run the program on one system call, as the kernel does."""
    made = program(machine)
    assert made is not None
    code = [struct.unpack_from("<HBBI", made, at) for at in range(0, len(made), 8)]
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    audit = MACHINES[machine].audit if audit is None else audit
    data = struct.pack("<IIQ6Q", number, audit, 0, *padded)
    at, word = 0, 0
    while True:
        operation, then, otherwise, value = code[at]
        at += 1
        match operation:
            case 0x20:
                [word] = struct.unpack_from("<I", data, value)
            case 0x15:
                at += then if word == value else otherwise
            case 0x35:
                at += then if word >= value else otherwise
            case 0x45:
                at += then if word & value else otherwise
            case 0x06:
                return value
            case _:
                pytest.fail(f"{operation:#x} is no instruction of ours")


@machines
def test_what_only_an_attacker_needs_is_denied(machine: str) -> None:
    """By whatever arguments."""
    for table, answer in ((DENIED, DENY), (ABSENT, MISSING)):
        for name, numbers in table.items():
            if (number := numbers[COLUMNS[machine]]) is not None:
                assert judged(machine, number, 2**64 - 1) == answer, name


@machines
def test_another_table_of_calls_is_no_way_around(machine: str) -> None:
    """32-bit programs, x32, another processor: they end. What is newer than the tables is not."""
    assert judged(machine, 0, audit=0x40000003) == KILL
    assert judged(machine, 0x40000000 | 250) == KILL
    assert judged(machine, NEWEST + 1) == MISSING
    assert program("mips") is None


SET_ID = st.sampled_from([0o4000, 0o2000, 0o6000])
HIGH = st.integers(0, 2**32 - 1).map(lambda high: high << 32)


@machines
@pytest.mark.parametrize(
    "name", ["chmod", "fchmod", "fchmodat", "fchmodat2", "mknod", "mknodat", "creat"]
)
@given(mode=st.integers(0, 0o1777), bits=SET_ID, high=HIGH)
def test_no_mode_gets_the_bits_that_lend_an_owners_rights(
    machine: str, name: str, mode: int, bits: int, high: int
) -> None:
    """Whatever else is in the word, and beyond it, where the kernel does not look."""
    numbers, _ = LIMITED[name]
    number = numbers[COLUMNS[machine]]
    if number is None:
        return
    at = 2 if name in {"fchmodat", "fchmodat2", "mknodat"} else 1
    before = (0xFFFFFFFF,) * at
    assert judged(machine, number, *before, high | mode | bits) == DENY
    assert judged(machine, number, *before, high | mode) == ALLOW


@machines
@given(mode=st.integers(0, 0o1777), bits=SET_ID, flags=st.sampled_from([0x40, 0x410000, 0x42]))
def test_no_file_is_opened_into_being_with_them(
    machine: str, mode: int, bits: int, flags: int
) -> None:
    """Only where a file is made: else what stands in the mode's place is anything."""
    for name, at in (("open", 1), ("openat", 2)):
        number = LIMITED[name][0][COLUMNS[machine]]
        if number is not None:
            before = (7,) * at
            assert judged(machine, number, *before, flags, mode | bits) == DENY
            assert judged(machine, number, *before, flags, mode) == ALLOW
            assert judged(machine, number, *before, 0, mode | bits) == ALLOW


@machines
@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("mknodat", (0, 0, 0o020600), DENY),
        ("mknodat", (0, 0, 0o060600), DENY),
        ("mknodat", (0, 0, 0o010600), ALLOW),
        ("mknodat", (0, 0, 0o140600), ALLOW),
        ("clone", (0x10000000 | 17,), DENY),
        ("clone", (0x00020000 | 17,), DENY),
        ("clone", (17,), ALLOW),
        ("clone", (0x003D0F00,), ALLOW),  # a thread
        ("ioctl", (0, 0x5412), DENY),
        ("ioctl", (0, 0x541C), DENY),
        ("ioctl", (0, 1 << 32 | 0x5412), DENY),
        ("ioctl", (0, 0x5413), ALLOW),
        ("personality", (0x0040000,), DENY),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("socket", (1,), ALLOW),
        ("socket", (10,), ALLOW),
        ("socket", (40,), NO_FAMILY),
        ("socket", (38,), NO_FAMILY),
        ("fallocate", (0, 0), NO_ROOM_AHEAD),
        ("fallocate", (0, 1), NO_ROOM_AHEAD),
        ("fallocate", (0, 3), ALLOW),
    ],
)
def test_some_calls_are_denied_by_their_arguments(
    machine: str, name: str, arguments: tuple[int, ...], answer: int
) -> None:
    """Devices, namespaces, a terminal's input, another kind of process, sockets without a place."""
    number = LIMITED[name][0][COLUMNS[machine]]
    assert number is not None
    assert judged(machine, number, *arguments) == answer


@machines
@given(number=st.integers(0, NEWEST))
def test_everything_else_is_allowed(machine: str, number: int) -> None:
    """A program that does its work never meets the filter."""
    tables = [*DENIED.values(), *ABSENT.values(), *(numbers for numbers, _ in LIMITED.values())]
    if number not in {numbers[COLUMNS[machine]] for numbers in tables}:
        assert judged(machine, number, 2**64 - 1, 2**64 - 1, 2**64 - 1) == ALLOW


@pytest.mark.needs("libseccomp")
def test_the_numbers_are_those_of_a_library_that_knows_them() -> None:
    """`libseccomp` knows every number but those that are newer than it."""
    library = ctypes.CDLL(find_library("seccomp"))
    tables = {**DENIED, **ABSENT, **{name: numbers for name, (numbers, _) in LIMITED.items()}}
    for machine, column in COLUMNS.items():
        for name, numbers in tables.items():
            known = library.seccomp_syscall_resolve_name_arch(
                ctypes.c_uint32(MACHINES[machine].audit), name.encode()
            )
            if known >= 0:  # else it does not exist there
                assert numbers[column] == known, (machine, name)
    assert errno.EPERM == DENY & 0xFFFF
