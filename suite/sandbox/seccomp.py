"""A filter of system calls, as the kernel's own little programs: what nothing in a sandbox needs fails with EPERM.

The kernel's namespaces already forbid most of it. This takes away what would help to break out of them.
Source: struct sock_filter and the constants of linux/filter.h, linux/seccomp.h and linux/audit.h; call numbers of the kernel's tables.
"""

from __future__ import annotations

import platform
import struct

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
# A new process may not come with namespaces of its own. clone3 hides its flags in memory, where no filter sees them: without it libc takes clone.
CLONE, CLONE3, NEW_NAMESPACES = (56, 220), 435, 0x7E020080

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Name: numbers on x86_64 and aarch64; None where there is none.
DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "iopl": (172, None),
    "ioperm": (173, None),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    # Memory that is in no folder and need not be in any process, so that nobody counts it.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
}


def program(machine: str = "") -> bytes | None:
    """Writes the filter for a machine; None for one that is not known here, which then goes without."""
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        return None
    column = list(ARCHITECTURES).index(machine)
    numbers = [found for pair in DENIED.values() if (found := pair[column]) is not None]
    steps = [(LOAD, 0, 0, ARCHITECTURE), (JUMP_EQUAL, 1, 0, ARCHITECTURES[machine]), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    if machine == "x86_64":
        steps += [(JUMP_AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, EPERM)]  # the x32 calls are the same ones under other numbers
    for number in numbers:
        steps += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, EPERM)]
    steps += [(JUMP_EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, ENOSYS)]
    steps += [(JUMP_EQUAL, 0, 3, CLONE[column]), (LOAD, 0, 0, FIRST_ARGUMENT), (JUMP_ANY_BIT, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, EPERM)]
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join([struct.pack("<HBBI", *step) for step in steps])
