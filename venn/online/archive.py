"""A file of arrays that is safe to read, whatever its origin: npz, no pickles, a JSON header, checksums."""

from __future__ import annotations

import io
import json
import math
import os
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

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
        text = _array(members, "header")
        header = json.loads(expected(text, np.dtype(np.uint8), len(text)).tobytes())
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


def expected(values: NDArray[Any], dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    """Return a one-dimensional array, or raise if it is not of this dtype and length."""
    if values.dtype != dtype or values.ndim != 1:
        raise ValueError(f"a member has dtype {values.dtype} and shape {values.shape}")
    if len(values) != length:
        raise ValueError(f"a member has {len(values)} rows where the header says {length}")
    return values


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears whole at the end, or not at all; a missing folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name itself must reach the disk, where folders can be synced
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
