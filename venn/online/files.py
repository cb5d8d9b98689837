"""Files: arrays that are safe to read, whatever their origin; locks that end with their process."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

# -------------------------------------------------------------------------------------------------------------- archive
# A file of arrays that is safe to read, whatever its origin: npz, no pickles, a JSON header, checksums.

Arrays = dict[str, NDArray[Any]]


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write header and arrays; the file appears whole or not at all, and equal contents make equal bytes.

    Missing folders are made. The header's values must be JSON; the key "crc32" is reserved. Arrays are written from
    where they are: no copy of their size is made.
    """
    with written(path) as file:
        _write(file, header, arrays)


def packed(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of such a file."""
    file = io.BytesIO()
    _write(file, header, arrays)
    return file.getvalue()


def _write(file: IO[bytes], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(file, "w") as members:
        for name, values in arrays.items():
            _add(members, name, values)
        # Each member has a checksum; that of the header detects two exchanged members.
        text = json.dumps({**header, "crc32": _checksums(members)}, allow_nan=False).encode()
        _add(members, "header", np.frombuffer(text, np.uint8))


def _add(members: zipfile.ZipFile, name: str, values: NDArray[Any]) -> None:
    member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that equal contents make equal bytes
    with members.open(member, "w", force_zip64=True) as file:  # force_zip64: it may have 4 GiB and more
        npy.write_array(file, values, version=(1, 0), allow_pickle=False)


def _checksums(members: zipfile.ZipFile) -> dict[str, int]:
    return {info.filename.removesuffix(".npy"): info.CRC for info in members.infolist()}


def read(file: IO[bytes]) -> tuple[dict[str, Any], Arrays]:
    """Return the header and, by name, the arrays, their checksums verified.

    What a member claims is compared with the bytes present before anything is allocated. Any fault raises an error,
    though not always a ValueError: zipfile and json raise errors of their own.
    """
    with zipfile.ZipFile(file) as members:
        infos = members.infolist()
        if any(info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size for info in infos):
            raise ValueError("it has compressed members")
        if sum(info.file_size for info in infos) > file.seek(0, os.SEEK_END):
            raise ValueError("its members claim more bytes than the file has")
        checksums = _checksums(members)
        if len(checksums) != len(infos) or "header" not in checksums:
            raise ValueError("its members are not those of an archive of ours")
        header = json.loads(_array(members, "header").tobytes())
        if not isinstance(header, dict):
            raise ValueError("its header is no JSON object")
        del checksums["header"]
        said = header.get("crc32")
        if not isinstance(said, dict) or said.keys() != checksums.keys():
            raise ValueError("its members are not those its header names")
        if said != checksums:
            raise ValueError("the checksums of its members are not those its header names")
        return header, {name: _array(members, name) for name in checksums}


def _array(members: zipfile.ZipFile, name: str) -> NDArray[Any]:
    info = members.getinfo(f"{name}.npy")
    with members.open(info) as file:
        if npy.read_magic(file) != (1, 0):
            raise ValueError("a member has another npy version")
        shape, _, dtype = npy.read_array_header_1_0(file)
        size = info.file_size - file.tell()
    claimed = math.prod(shape) * dtype.itemsize  # Python's integers cannot overflow
    if dtype.hasobject or any(length < 0 for length in shape) or claimed != size or not dtype.itemsize:
        raise ValueError(f"a member has dtype {dtype} and shape {shape} over {size} bytes")
    with members.open(info) as file:  # reopened: zipfile verifies no checksum after seeking back
        values: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    return values


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears whole at the end, or not at all; a missing folder is made.

    A device or a pipe is written as it is: nothing may take its place. An error names this file, not the one beside it
    that is written first.
    """
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # the first error says what is wrong
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(temporary) and error.filename2 is None:
            error.filename = str(path)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name itself must reach the disk, where folders can be synced
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# ----------------------------------------------------------------------------------------------------------------- lock
# Locks on files that end with their process: only one process may learn into a journal, whatever the names of it.

try:
    import fcntl
except ImportError:  # not a Unix: nothing keeps a second process away there
    fcntl = None  # type: ignore[assignment]

MOMENT = 0.02  # seconds

#: Device and inode of the files that this process owns by `own`. To open one of them again and to close it would take
#: SQLite's locks on it away, which POSIX drops when a process closes any of its handles of a file.
_owned: set[tuple[int, int]] = set()


def take(path: str | os.PathLike[str]) -> int | None:
    """Lock a file for this process, and make it if missing; return its handle, or None on a system without locks.

    Raises
    ------
    BlockingIOError
        Another process has the lock.
    OSError
        The file cannot be opened.
    """
    if fcntl is None:
        return None  # type: ignore[unreachable]
    return _locked(os.open(Path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))


def beside(journal: str | os.PathLike[str]) -> str:
    """Return the path of a journal's lock file, the same by whatever name of the journal."""
    return f"{os.path.realpath(journal)}-lock"


def held(journal: str | os.PathLike[str]) -> bool | None:
    """Return whether a process has locked a journal; None where that cannot be known."""
    if fcntl is None:
        return None  # type: ignore[unreachable]
    try:
        handle = os.open(beside(journal), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # for a moment, which `_locked` waits for
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _locked(handle: int) -> int:
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(MOMENT)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


def release(handle: int) -> None:
    """Unlock and close. Closing alone would leave the lock with a forked child."""
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


class Owned:
    """A database that belongs to this process by its inode, so that no other name of it lets a second one in.

    The file is made if there is none. Its locks are beside those of SQLite: on Linux the two do not meet. Elsewhere
    they may, and there only the lock beside the file (`take`) holds.

    Parameters
    ----------
    path : str or path

    Raises
    ------
    BlockingIOError
        Another process has it, or another object of this one.
    OSError
        The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.handle: int | None = None
        self.inode: tuple[int, int] | None = None
        if fcntl is None or sys.platform != "linux":
            return
        while True:
            try:
                there = os.stat(path)
            except FileNotFoundError:
                there = None
            if there is not None and (there.st_dev, there.st_ino) in _owned:
                raise BlockingIOError(f"this process has {path} open")
            handle = _locked(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
            now = os.fstat(handle)
            self.inode = (now.st_dev, now.st_ino)
            if there is None or (there.st_dev, there.st_ino) == self.inode:
                break
            os.close(handle)  # another file has come to this name in between
        self.handle = handle
        _owned.add(self.inode)

    def release(self) -> None:
        """Let others have it; only after SQLite has closed its own handles of the file."""
        if self.handle is not None and self.inode is not None:
            os.close(self.handle)
            _owned.discard(self.inode)
        self.handle = None
