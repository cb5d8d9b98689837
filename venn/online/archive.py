"""A file of arrays that is safe to read from anyone: npz, no pickles, a JSON header, checksums."""

from __future__ import annotations

import io
import json
import os
import struct
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

Bytes = bytes | bytearray | memoryview

LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
MIDNIGHT, NEW_YEAR = 0, 0x21  # of 1980: no time of day, so that equal contents make equal bytes
MOST = 0xFFFFFFFF  # bytes, as this plain form of zip can tell
TOO_LARGE = "an archive must be smaller than 4 GiB, got more"


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write header and arrays; the file appears whole or not at all, equal contents make equal bytes.

    Missing folders are made. The header's values must be JSON; the key "crc32" is ours. Arrays go to the file from
    where they are: nothing of their size is made beside them.

    Raises
    ------
    ValueError
        The file would have 4 GiB or more.
    """
    write_atomically(path, pieces(header, arrays))


def pieces(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> list[Bytes]:
    """Return the bytes of such a file, piece by piece; those of arrays are views."""
    members = {name: _member(values) for name, values in arrays.items()}
    checksums = {name: zlib.crc32(body, zlib.crc32(head)) for name, (head, body) in members.items()}
    # zip has a checksum of each member, but none that would notice two members exchanged.
    text = json.dumps({**header, "crc32": checksums}, allow_nan=False).encode()
    head, body = _member(np.frombuffer(text, np.uint8))
    members = {"header": (head, body), **members}
    checksums = {"header": zlib.crc32(body, zlib.crc32(head)), **checksums}
    sizes = {name: len(head) + len(body) for name, (head, body) in members.items()}
    *before, end = _frames([(name, sizes[name], checksums[name]) for name in members])
    made: list[Bytes] = []
    for local, (head, body) in zip(before, members.values(), strict=True):
        made += [local, head, body]
    return [*made, end]


def _member(values: NDArray[Any]) -> tuple[bytes, memoryview]:
    """Return an array in npy form: its header, and its numbers where they are if they are in one piece."""
    if values.dtype.hasobject:
        raise TypeError(f"arrays must hold numbers or text, got dtype {values.dtype}")
    described = npy.header_data_from_array_1_0(values)
    in_columns = values.flags.f_contiguous and not values.flags.c_contiguous
    described["fortran_order"] = in_columns
    in_rows = values.T if in_columns else np.ascontiguousarray(values)
    file = io.BytesIO()
    npy.write_array_header_1_0(file, described)
    flat = in_rows.reshape(-1)
    return file.getvalue(), flat.view(np.uint8).data if flat.nbytes else memoryview(b"")


def _frames(members: list[tuple[str, int, int]]) -> Iterator[bytes]:
    """Return what a zip file of stored members (name, size, checksum) has before each of them, and after the last."""
    central, offset = b"", 0
    for name, size, crc in members:
        file = f"{name}.npy".encode("ascii")
        if offset + size > MOST:
            raise ValueError(TOO_LARGE)
        facts = (20, 0, 0, MIDNIGHT, NEW_YEAR, crc, size, size, len(file), 0)
        central += CENTRAL.pack(b"PK\1\2", 20 | 3 << 8, *facts, 0, 0, 0, 0o600 << 16, offset) + file
        local = LOCAL.pack(b"PK\3\4", *facts) + file
        offset += len(local) + size
        yield local
    if offset + len(central) > MOST or len(members) > 0xFFFF:
        raise ValueError(TOO_LARGE)
    yield central + END.pack(b"PK\5\6", 0, 0, len(members), len(members), len(central), offset, 0)


def unpack(data: Bytes, exact: bool = False) -> tuple[dict[str, Any], dict[str, memoryview]]:
    """Return the header and, by name, the members in npy form, views of `data`, their checksums verified.

    Whatever is wrong raises, though not always a ValueError: zipfile and json raise errors of their own. If `exact`,
    so does any byte beside the members that `write` would not have written.
    """
    view = memoryview(data).cast("B")
    with zipfile.ZipFile(_Window(view)) as file:
        infos = file.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size for info in infos):
        raise ValueError("it has compressed members")
    if sum(info.file_size for info in infos) > len(view):
        raise ValueError("its members claim more bytes than the file has")
    found = [info.filename for info in infos]
    if len(found) != len(set(found)) or "header.npy" not in found:
        raise ValueError("its members are not those of an archive of ours")
    members, checksums = {}, {}
    for info in infos:
        start = info.header_offset + LOCAL.size
        start += sum(struct.unpack_from("<2H", view, start - 4))
        name = info.filename.removesuffix(".npy")
        members[name] = view[start : start + info.file_size]
        checksums[name] = zlib.crc32(members[name])
        if len(members[name]) != info.file_size or checksums[name] != info.CRC:
            raise ValueError(f"the checksum of {name} does not agree")
    if exact:
        _check_frames(view, members, checksums)
    header = json.loads(array(members.pop("header"), np.dtype(np.uint8)).tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    said = header.get("crc32")
    if not isinstance(said, dict) or said.keys() != members.keys():
        raise ValueError("its members are not those its header names")
    for name in members:
        if checksums[name] != said[name]:
            raise ValueError(f"the checksum of {name} does not agree")
    return header, members


class _Window(io.RawIOBase):
    """Bytes as a file to read, without a copy."""

    def __init__(self, view: memoryview) -> None:
        self._view, self._at = view, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, len(self._view))[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        end = len(self._view) if size is None or size < 0 else self._at + size
        part = bytes(self._view[self._at : end])
        self._at += len(part)
        return part


def _check_frames(view: memoryview, members: Mapping[str, memoryview], checksums: Mapping[str, int]) -> None:
    at = 0
    sizes = [*(len(member) for member in members.values()), 0]
    frames = _frames([(name, len(member), checksums[name]) for name, member in members.items()])
    for frame, size in zip(frames, sizes, strict=True):
        if view[at : at + len(frame)] != frame:
            raise ValueError(f"it is damaged at byte {at} or soon after, between its members")
        at += len(frame) + size
    if at != len(view):
        raise ValueError(f"it has {len(view)} bytes where its members end at {at}")


def array(content: Bytes, dtype: np.dtype[Any], length: int | None = None) -> NDArray[Any]:
    """Return a one-dimensional npy member of known dtype, and of known length where one is given.

    The claimed shape is compared with the bytes that are there before anything is allocated.
    """
    shape, _, found, body = _described(content)
    if found != dtype or len(shape) != 1 or shape[0] * dtype.itemsize != len(body):
        raise ValueError(f"a member has dtype {found} and shape {shape} over {len(body)} bytes")
    if length is not None and shape[0] != length:
        raise ValueError(f"a member has {shape[0]} rows where the header says {length}")
    return np.frombuffer(body, dtype).copy()


def view(content: Bytes) -> NDArray[Any]:
    """Return an npy member of whatever dtype and shape, as a view that cannot be written to."""
    shape, in_columns, dtype, body = _described(content)
    size = dtype.itemsize
    for length in shape:  # a product of Python's own integers: it cannot overflow
        size *= length
    if dtype.hasobject or any(length < 0 for length in shape) or size != len(body) or not dtype.itemsize:
        raise ValueError(f"a member has dtype {dtype} and shape {shape} over {len(body)} bytes")
    flat = np.frombuffer(body, dtype)
    return flat.reshape(shape[::-1]).T if in_columns else flat.reshape(shape)


def _described(content: Bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], memoryview]:
    whole = memoryview(content)
    file = io.BytesIO(whole[: 10 + 0xFFFF])  # no header of this version is longer
    if npy.read_magic(file) != (1, 0):
        raise ValueError("a member has another npy version")
    shape, in_columns, found = npy.read_array_header_1_0(file)
    return shape, in_columns, found, whole[file.tell() :]


def write_atomically(path: Path, content: list[Bytes]) -> None:
    """Write a file that is there whole or not at all, whatever happens; a folder that is missing is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            for piece in content:
                file.write(piece)
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
