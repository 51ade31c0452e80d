"""Files that appear whole or not at all, and commands that say so where they cannot be written."""

import contextlib
import errno
import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

BAD_INPUT = 2


@contextlib.contextmanager
def partial_of(path):
    """The name under which `path` is written; it becomes `path` at the end, and nothing is left of it after a failure. A
    symbolic link stays one; what is no file (a device, a pipe) is written as it is. An OSError names the file."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path
        return
    partial = path.with_name(f"{path.name}.partial.{os.getpid()}")
    try:
        yield partial
        os.replace(partial, path)
    except BaseException as failure:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(failure, OSError) and failure.errno is not None:
            raise OSError(failure.errno, failure.strerror, str(path)) from None
        raise


def write_whole(path, data):
    """Writes bytes, or text as UTF-8, under another name first; a kill leaves the old file or the new one."""
    with partial_of(path) as partial, open(partial, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            os.fsync(file.fileno())


def check_writable(path):
    """That write_whole() may write it, before long work whose results belong there; OSError if not."""
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.exists() or path.is_file():
        with tempfile.TemporaryFile(dir=path.parent):
            pass


def sha256_of(path):
    """Of a file's content, in hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


def os_error_text(failure):
    """`FILE: why`, as far as it is known."""
    what = failure.strerror or str(failure)
    return f"{failure.filename}: {what}" if failure.filename is not None else f"cannot write: {what}"


def exit_status(name, main, arguments):
    """What `main` returns, once its output is written. A file, or an output, that the system refuses is a message and
    exit status 2."""
    try:
        try:
            status = main(arguments)
        except SystemExit as end:  # of argparse
            status = end.code
        sys.stdout.flush()
        return status
    except OSError as failure:
        with contextlib.suppress(OSError):
            print(f"rvma: error: {name}: {os_error_text(failure)}", file=sys.stderr, flush=True)
        # What is left in the buffer would fail again when the interpreter ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        return BAD_INPUT
