"""A file of arrays that is safe to read from anyone: npz, no pickles, a JSON header, checksums."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write header and arrays; the file appears whole or not at all, equal contents make equal bytes.

    Missing folders are made. The header's values must be JSON; the key "crc32" is ours.
    """
    members = {name: _member(values) for name, values in arrays.items()}
    # zip has a checksum of each member, but none that would notice two members exchanged.
    checksums = {name: zlib.crc32(member) for name, member in members.items()}
    text = json.dumps({**header, "crc32": checksums}, allow_nan=False).encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as file:
        for name, member in {"header": _member(np.frombuffer(text, np.uint8)), **members}.items():
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), member)  # ZipInfo: no time of day
    _write_atomically(path, content.getvalue())


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the header and, by name, the members in npy form, their checksums verified.

    Whatever is wrong raises, though not always a ValueError: zipfile and json raise errors of their own.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        infos = file.infolist()
        if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
            raise ValueError("it has compressed members")
        if sum(info.file_size for info in infos) > len(data):
            raise ValueError("its members claim more bytes than the file has")
        found = [info.filename for info in infos]
        if len(found) != len(set(found)) or "header.npy" not in found:
            raise ValueError("its members are not those of an archive of ours")
        members = {name.removesuffix(".npy"): file.read(name) for name in found}
    header = json.loads(array(members.pop("header"), np.dtype(np.uint8)).tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    checksums = header.get("crc32")
    if not isinstance(checksums, dict) or checksums.keys() != members.keys():
        raise ValueError("its members are not those its header names")
    for name, member in members.items():
        if zlib.crc32(member) != checksums[name]:
            raise ValueError(f"the checksum of {name} does not agree")
    return header, members


def array(content: bytes, dtype: np.dtype[Any], length: int | None = None) -> NDArray[Any]:
    """Return a one-dimensional npy member of known dtype, and of known length where one is given.

    The claimed shape is compared with the bytes that are there before anything is allocated.
    """
    file = io.BytesIO(content)
    if npy.read_magic(file) != (1, 0):
        raise ValueError("a member has another npy version")
    shape, _, found = npy.read_array_header_1_0(file)
    body = content[file.tell() :]
    if found != dtype or len(shape) != 1 or shape[0] * dtype.itemsize != len(body):
        raise ValueError(f"a member has dtype {found} and shape {shape} over {len(body)} bytes")
    if length is not None and shape[0] != length:
        raise ValueError(f"a member has {shape[0]} rows where the header says {length}")
    return np.frombuffer(body, dtype).copy()


def _member(values: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    npy.write_array(file, values, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _write_atomically(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
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
