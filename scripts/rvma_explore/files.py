"""Files that appear whole or not at all."""

import hashlib
import os
from pathlib import Path


def write_whole(path, data):
    """Writes bytes, or text as UTF-8, under another name first; a kill leaves the old file or the new one."""
    path = Path(path)
    partial = path.with_name(f"{path.name}.partial.{os.getpid()}")
    with open(partial, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def sha256_of(path):
    """Of a file's content, in hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()
