"""Files of text: unpacked, decoded by their first bytes, with lines of bounded length."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from streams.checks import LONGEST, imported

# A packed file may unpack to FREE bytes, and beyond to RATIO times its size: a table is packed to a tenth or so, a
# bomb to a thousandth.
FREE, RATIO = 1 << 26, 100

PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip"}
TABLES = {b"PAR1": "a Parquet", b"ARROW1": "an Arrow or Feather", b"FEA1": "a Feather", b"SQLite format 3": "an SQLite"}


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a file of text, plain or packed by gzip, bzip2, xz or zip; errors of its form say what to do."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} must be a file, for it is read more than once, and no pipe: save what comes of it")
    packing, encoding = "", "utf-8"
    try:
        with path.open("rb") as raw:
            start = raw.read(16)
            raw.seek(0)
            packing = next((name for magic, name in PACKED.items() if start.startswith(magic)), "")
            binary: Any = raw
            if packing:
                binary = io.BufferedReader(_Unpacked(path, *_unpacked(path, raw, packing), packing))
            with binary:
                start = binary.peek(16)
                _check_text(path, start)
                encoding = _encoding(start)
                with _Lines(binary, encoding=encoding) as lines:
                    lines.name_of_file = path
                    yield lines
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        advice = f"; perhaps it becomes so by iconv -f latin1 -t utf-8 {path} > new.csv" if name == "UTF-8" else ""
        raise ValueError(f"{path} must be {name} text: {error}{advice}") from None
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is a damaged zip file: {error}") from None


def check_size(path: Path) -> None:
    """Refuse a packed file that unpacks to more than a table would, before a row of it is read: in a second or so."""
    with opened(path) as lines:
        binary = lines.buffer
        if isinstance(binary, io.BufferedReader) and isinstance(binary.raw, _Unpacked):
            while binary.read(1 << 20):
                pass


def _unpacked(path: Path, raw: BinaryIO, packing: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return the stream of what is packed, and the errors of a damaged one."""
    if packing == "gzip":
        return gzip.GzipFile(fileobj=raw), (EOFError, gzip.BadGzipFile, zlib.error)
    if packing == "bzip2":
        bz2 = imported("bz2", f"{path} needs a Python with bz2")  # not every Python has it
        return bz2.BZ2File(raw), (EOFError, OSError)
    if packing == "xz":
        lzma = imported("lzma", f"{path} needs a Python with lzma")
        return lzma.LZMAFile(raw), (EOFError, lzma.LZMAError)
    archive = zipfile.ZipFile(raw)
    names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if "[Content_Types].xml" in names:
        raise ValueError(f"{path} is an Excel workbook: save its sheet as CSV")
    if len(names) != 1:
        raise ValueError(f"{path} must be a zip file of one table, got {len(names)} files: unpack it first")
    if archive.getinfo(names[0]).flag_bits & 1:
        raise ValueError(f"{path} needs a password: unpack it first")
    return archive.open(names[0]), (EOFError, zlib.error, zipfile.BadZipFile)


class _Unpacked(io.RawIOBase):
    """Bytes of a packed file, not more than a table would hold."""

    def __init__(self, path: Path, stream: Any, damage: tuple[type[Exception], ...], packing: str) -> None:
        self._path, self._stream, self._damage, self._packing = path, stream, damage, packing
        self._most = max(FREE, RATIO * path.stat().st_size)
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block = self._stream.read(len(buffer))
        except self._damage as error:
            raise ValueError(f"{self._path} is a damaged {self._packing} file: {error}") from None
        self._count += len(block)
        if self._count > self._most:
            raise ValueError(
                f"{self._path} must unpack to at most {RATIO} times its size, as tables do, got more: unpack it first, "
                "if it is meant to be so"
            )
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Lines(io.TextIOWrapper):
    """Lines of bounded length: one longer than all memory would end the process."""

    name_of_file: Path
    _number = 0

    def __next__(self) -> str:  # type: ignore[override]
        self._number += 1
        line = self.readline(LONGEST)
        if len(line) == LONGEST:
            raise ValueError(
                f"{self.name_of_file}, line {self._number} must have fewer than {LONGEST} characters, got more"
            )
        if not line:
            raise StopIteration
        return line


def _check_text(path: Path, start: bytes) -> None:
    for magic, kind in TABLES.items():
        if start.startswith(magic):
            raise ValueError(
                f"{path} must be a CSV file, got {kind} file: write it as CSV, or read it in Python by "
                "streams.from_frames"
            )


def _encoding(start: bytes) -> str:
    """Return the encoding that the first bytes of a text show: by a mark, or by where zeros are."""
    if start[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        return "utf-32"
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros = [byte == 0 for byte in start[:4]]
    forms: dict[tuple[bool, ...], str] = {
        (False, True, True, True): "utf-32-le", (True, True, True, False): "utf-32-be",
        (False, True, False, True): "utf-16-le", (True, False, True, False): "utf-16-be",
    }  # fmt: skip
    return forms.get(tuple(zeros), "utf-8-sig")
