"""Files: texts, unpacked and decoded; published data, found in a folder or fetched, and checked."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tempfile
import urllib.error
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote as quoted
from typing import IO, Any, BinaryIO, Literal, TextIO

import numpy as np

from streams.checks import LONGEST, Floats, imported
from streams.schema import ColumnKind, Numeric, is_number

# --------------------------------------------------------------------------------------------------------------- opened
# Files of text: unpacked, decoded by their first bytes, with lines of bounded length.

# A packed file may unpack to FREE bytes, and beyond to RATIO times its size: a table is packed to a tenth or so, a
# bomb to a thousandth.
FREE, RATIO = 1 << 26, 100

PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip"}
FRAMES = "write it as CSV, or read it in Python by streams.from_frames"
UNPACK = "unpack it first"
#: First bytes of files that are not text: what the file is, and what to do.
OTHERS = {
    b"PAR1": ("a Parquet file", FRAMES),
    b"ARROW1": ("an Arrow or Feather file", FRAMES),
    b"FEA1": ("a Feather file", FRAMES),
    b"SQLite format 3": ("an SQLite file", FRAMES),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old Excel workbook (.xls)", "save its sheet as CSV"),
    b"%PDF-": ("a PDF", "ask for the table that it shows, as CSV"),
    b"version https://git-lfs": ("a pointer of Git LFS in place of the file", "git lfs pull fetches it"),
    b"/annex/objects/": ("a pointer of git-annex in place of the file", "git annex get fetches it"),
    b"\x28\xb5\x2f\xfd": ("a file packed by zstd", UNPACK),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", UNPACK),
    b"Rar!\x1a\x07": ("a RAR archive", UNPACK),
    b"\x93NUMPY": ("an array of numpy", "read it by numpy.load, and give it to streams.from_arrays"),
    b"RDX3\n": ("a file of R", "write it as CSV, in R by write.csv"),
}  # fmt: skip
PAGE = re.compile(rb"\s*<(!doctype|html|\?xml|head|table)\b", re.IGNORECASE)
JSON = re.compile(rb"\s*(\{\s*\"|\[\s*[\[{])")


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
                start = binary.peek(64)
                _check_text(path, start)
                encoding = _encoding(start)
                with _Lines(binary, encoding=encoding) as lines:
                    lines.name_of_file = path
                    yield lines
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        iconv = f"; perhaps it becomes so by iconv -f cp1252 -t utf-8 {quoted(str(path))} > new.csv"
        advice = iconv if name == "UTF-8" and not packing else ""
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
    if {"mimetype", "content.xml"} <= {*names}:
        raise ValueError(f"{path} is a LibreOffice document: save its sheet as CSV")
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
    """Refuse what is no table of text, by its first bytes: say what it is, and what to do."""
    found = next((found for magic, found in OTHERS.items() if start.startswith(magic)), None)
    text = start.removeprefix(b"\xef\xbb\xbf")
    if PAGE.match(text):
        found = "a web page (HTML or XML)", "open it in a browser, perhaps to log in, and save the table as CSV"
    elif JSON.match(text):
        found = "JSON", "write it as CSV; lines of messages, one object each, are read as jsonl:FILE by venn run"
    if found is not None:
        raise ValueError(f"{path} must be a CSV file, got {found[0]}: {found[1]}")


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


# ---------------------------------------------------------------------------------------------------------------- files
# Published data files: found in the user's folder or the cache, or fetched; always checked.

_verified: dict[tuple[str, int, int], str] = {}


@dataclass(frozen=True)
class DataFile:
    """A published file, identified by its checksum.

    Parameters
    ----------
    name : str
    size : int
        Bytes.
    sha256 : str
        Checksum in hexadecimal.
    """

    name: str
    size: int
    sha256: str

    def where(self) -> Literal["local", "cached", "absent"]:
        """Return where `at_hand` would take the file from."""
        if (local := self._local()) is not None and local.exists():
            return "local"
        return "cached" if self._cached().exists() else "absent"

    def at_hand(self) -> Path | None:
        """Return the path of the checked file in $STREAMS_DATA or in the cache; None if it is in neither."""
        local = self._local()
        if local is not None and not local.parent.is_dir():
            raise FileNotFoundError(f"STREAMS_DATA must be a folder, got {str(local.parent)!r}")
        for path, remedy in (
            (local, "replace it"),
            (self._cached(), "delete it, so that it is fetched anew"),
        ):
            if path is not None and path.exists():
                self.check(path, _checksum(path), remedy)
                return path
        return None

    @property
    def remedy(self) -> str:
        """What to do without the file, as part of a message."""
        return f"set the environment variable STREAMS_DATA to a folder with {self.name}"

    def keep(self, what: str, write: Callable[[IO[bytes]], str], remedy: str) -> Path:
        """Write a file into the cache by `write`, which returns its checksum; return its path.

        It is written under another name and renamed when complete and checked: at any time, any process finds
        the right file in the cache, or none. The error of a wrong checksum names `what` it is of, and the `remedy`.
        """
        target = self._cached()
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=self.name + ".", suffix=".part", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as output:
                found = write(output)
            self.check(what, found, remedy)
            os.replace(part, target)
        finally:
            Path(part).unlink(missing_ok=True)
        return target

    def _local(self) -> Path | None:
        folder = os.environ.get("STREAMS_DATA")
        return Path(folder) / self.name if folder else None

    def _cached(self) -> Path:
        return cache_folder() / self.name

    def check(self, what: Path | str, found: str, remedy: str) -> None:
        """Raise ValueError unless the checksum found is that of the file."""
        if found != self.sha256:
            raise ValueError(
                f"{what} must have sha256 {self.sha256}, got {found}: it is not the published file; {remedy}"
            )


def cache_folder() -> Path:
    """Return the folder for downloaded files; it need not exist yet.

    %LOCALAPPDATA%\\vennstream on Windows, elsewhere $XDG_CACHE_HOME/vennstream or ~/.cache/vennstream.
    """
    variable, default = ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_CACHE_HOME", ".cache")
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / default) / "vennstream"


def _checksum(path: Path) -> str:
    """Return the sha256 of a file, computed again only if the file has changed."""
    status = path.stat()
    key = (str(path.resolve()), status.st_mtime_ns, status.st_size)
    if key not in _verified:
        with path.open("rb") as file:
            _verified[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return _verified[key]


# -------------------------------------------------------------------------------------------------------------- fetched
# Fetches published tables by scikit-learn's own functions, from OpenML and others, and writes them as ours.

BLOCK = 20_000  # rows written at once


@dataclass(frozen=True)
class Decoded:
    """A table as its source has it.

    Parameters
    ----------
    names : sequence of str
        Of the d features.
    X : ndarray of float, shape (n, d)
        Numbers; codes where `words` has the feature. NaN is a missing value.
    words : mapping from str to sequence of str
        The words that the codes of a feature stand for.
    y : ndarray, shape (n,)
        Labels, words or numbers.
    """

    names: Sequence[str]
    X: Floats
    words: Mapping[str, Sequence[str]]
    y: np.ndarray[Any, Any]


def from_openml(number: int, label: str) -> Decoded:
    """Return a data set of OpenML by its number, from scikit-learn's cache if it is there."""
    from sklearn.datasets import fetch_openml

    # liac-arff reads numbers to the last bit, and needs no pandas.
    bunch = fetch_openml(data_id=number, target_column=label, as_frame=False, parser="liac-arff")
    return Decoded(bunch.feature_names, bunch.data, bunch.categories or {}, bunch.target)


def from_covtype() -> Decoded:
    """Return Covertype, from scikit-learn's cache if it is there."""
    from sklearn.datasets import fetch_covtype

    bunch = fetch_covtype()
    return Decoded(bunch.feature_names, bunch.data, {}, bunch.target)


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A table that scikit-learn fetches, and what makes it the published one.

    Values are written in one spelling, whatever that of the source: numbers as short as they are exact, 1.50 as 1.5 and
    2.0 as 2; words as they are. So a table has the same checksum from wherever it comes.

    Parameters
    ----------
    table : DataFile
        The table in that spelling, a CSV file of ours.
    names : tuple of str
        Our names of the features, in the order of the source.
    openml : int, optional
        Number of the data set on OpenML; without one it is Covertype.
    label : str, optional
        Column of the source that holds the label, where it is not the one that the source names.
    drop : tuple of str, optional
        Columns of the source that are no features.
    rows : tuple of two int, optional
        First row of the source that is ours, and the first behind it that is not.
    values : mapping from str to mapping from str to str, optional
        Our words for those of the source, by our name of a column; "label" is the label's.
    """

    table: DataFile
    names: tuple[str, ...]
    openml: int | None = None
    label: str = "default-target"
    drop: tuple[str, ...] = ()
    rows: tuple[int, int] | None = None
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The name of the source, for messages."""
        return f"OpenML (data set {self.openml})" if self.openml else "scikit-learn's fetch_covtype"

    def find(self, name: str, remedy: str, schema: Mapping[str, ColumnKind]) -> Path:
        """Return the path of the checked table, fetched if it is not in the cache yet.

        Raises
        ------
        ValueError
            When the source has another table than the published one.
        FileNotFoundError
            When the source cannot be reached; the message says what to do.
        """
        path = self.table.at_hand()
        if path is not None:
            return path
        found = self._fetch(name, remedy)
        return self.table.keep(
            f"the table of {name} from {self.source}", lambda output: self.write(found, schema, output), remedy
        )

    def _fetch(self, name: str, remedy: str) -> Decoded:
        if offline():
            raise FileNotFoundError(f"{name} is not on this machine, and STREAMS_OFFLINE forbids to fetch it: {remedy}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it tries again: the last error says enough
                return from_covtype() if self.openml is None else from_openml(self.openml, self.label)
        except (OSError, ValueError, KeyError) as error:  # whatever a server may answer
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            reason = " ".join(str(getattr(error, "reason", error)).split())
            raise FileNotFoundError(
                f"{name} is not on this machine and cannot be fetched from {self.source}: {reason}; "
                f"try again with a network, or {remedy}"
            ) from error

    def write(self, found: Decoded, schema: Mapping[str, ColumnKind], output: IO[bytes]) -> str:
        """Write a table in our spelling and return its checksum."""
        kept = [j for j, name in enumerate(found.names) if name not in self.drop]
        if len(kept) != len(self.names):
            raise ValueError(f"{self.source} must have the {len(self.names)} features of the table, got {len(kept)}")
        first, end = self.rows or (0, len(found.y))
        digest = hashlib.sha256()

        def line_up(columns: Sequence[Sequence[str]]) -> None:
            text = "".join(",".join(row) + "\n" for row in zip(*columns, strict=True)).encode()
            digest.update(text)
            output.write(text)

        line_up([[name] for name in (*self.names, "label")])
        for start in range(first, end, BLOCK):
            rows = slice(start, min(start + BLOCK, end))
            columns = []
            for j, name in zip(kept, self.names, strict=True):
                spell = self._speller(name, schema.get(name, Numeric()), found.words.get(found.names[j]))
                columns.append(_spelled(found.X[rows, j], spell))
            label = self._speller("label", None, None)
            line_up([*columns, _spelled(found.y[rows], label)])
        return digest.hexdigest()

    def _speller(self, name: str, kind: ColumnKind | None, words: Sequence[str] | None) -> Callable[[Any], str]:
        """Return the function that spells values of a column in our way."""
        ours = self.values.get(name, {})

        def spell(value: Any) -> str:
            if value != value:
                return "?"
            text = value if isinstance(value, str) else _number(float(value)) if words is None else words[int(value)]
            text = ours.get(text, text)
            return _number(float(text)) if isinstance(kind, Numeric) and is_number(text) else text

        return spell


def offline() -> bool:
    """Whether $STREAMS_OFFLINE is set: nothing is fetched."""
    return bool(os.environ.get("STREAMS_OFFLINE"))


def _number(value: float) -> str:
    """Return the shortest text of a number from which it is read back to the last bit."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def _spelled(values: np.ndarray[Any, Any], spell: Callable[[Any], str]) -> list[str]:
    """Return the texts of values, each distinct value spelled once."""
    distinct, places = np.unique(values, return_inverse=True)
    texts = np.array([spell(value) for value in distinct.tolist()], dtype=object)
    return texts[places.reshape(-1)].tolist()
