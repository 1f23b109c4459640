"""Takes system calls from a program, which fail then (seccomp): from this one by forbid(), or from
a command, in place of which it says "cannot be forbidden" where that is not possible.

A call is a name, a number, or NAME:ARGUMENT:BITS, where only calls with all these bits in that
argument (from 0) fail.

usage: forbidden.py ERROR CALL... -- COMMAND...
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Sequence

_ALLOW, _FAIL, _IN_ALL_THREADS, _MASKED_EQUAL = 0x7FFF0000, 0x00050000, 4, 7


#: A command after these words can open nothing past the page cache.
NOT_DIRECT = [sys.executable, __file__, "EINVAL", f"openat:2:{os.O_DIRECT}", "--"]


class _Compared(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


def forbid(error: int, calls: Sequence[str]) -> bool:
    """In all threads. Whether they are."""
    try:
        seccomp = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return False
    seccomp.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(seccomp.seccomp_init(_ALLOW))
    wrong = seccomp.seccomp_attr_set(rules, _IN_ALL_THREADS, 1)
    for call in calls:
        name, *limits = call.split(":")
        number = (
            int(name) if name.isdigit() else seccomp.seccomp_syscall_resolve_name(name.encode())
        )
        compared = (_Compared * 1)()
        if limits:
            argument, bits = map(int, limits)
            compared[0] = _Compared(argument, _MASKED_EQUAL, bits, bits)
        count = 1 if limits else 0
        wrong |= seccomp.seccomp_rule_add_array(rules, _FAIL | error, number, count, compared)
    return not wrong | seccomp.seccomp_load(rules)


def main() -> None:
    split = sys.argv.index("--")
    if not forbid(getattr(errno, sys.argv[1]), sys.argv[2:split]):
        sys.exit("cannot be forbidden")
    command = sys.argv[split + 1 :]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
