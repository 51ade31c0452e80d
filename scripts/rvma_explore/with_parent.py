"""Processes that end with the one that started them, in whatever way that ends (Linux, prctl(2))."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def end_with_parent(number):
    """From now on this process gets signal `number` when its parent ends, by kill -9 as well."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0)


def child_of_this(number=signal.SIGKILL):
    """For `preexec_fn` of subprocess: the child gets signal `number` when the thread that started it ends."""
    parent = os.getpid()

    def before_it_starts():
        end_with_parent(number)
        if os.getppid() != parent:  # it has ended already
            os.kill(os.getpid(), number)
    return before_it_starts
