"""Finds published data files in the user's folder, the cache or on a server; always checks their content."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote, urlsplit

Where = Literal["local", "cached", "download"]

#: Called with the bytes received so far and the bytes expected.
Progress = Callable[[int, int], None]

#: Seconds that a server may stay silent.
TIMEOUT = 30.0

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

    def where(self) -> Where:
        """Return "local", "cached" or "download": where `find` would take the file from."""
        if (local := self._local()) is not None and local.exists():
            return "local"
        return "cached" if self._cached().exists() else "download"

    def find(self, origin: str, base_url: str | None = None, progress: Progress | None = None) -> Path:
        """Return the path of the checked file.

        The folder $STREAMS_DATA is looked at first, then the cache; else the file is downloaded into
        the cache from `base_url` or $STREAMS_URL. `origin` tells the reader of an error message who
        published the data and where.

        Raises
        ------
        ValueError
            When the content is not the published one, or the address is not of file, http or https.
        FileNotFoundError
            When the file is nowhere and no address is known; the message says what to do.
        OSError
            When the download fails.
        """
        path = self.at_hand()
        if path is not None:
            return path
        base_url = address(base_url)
        if not base_url:
            raise FileNotFoundError(
                f"{self.name} is not on this machine: {self.remedy}. Origin: {origin}; sha256 {self.sha256}"
            )
        return self._download(base_url, progress)

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
        return (
            f"set the environment variable STREAMS_DATA to a folder with {self.name}, "
            "or STREAMS_URL to an address that serves it"
        )

    def keep(self, what: str, write: Callable[[IO[bytes]], str], remedy: str = "nothing was kept") -> Path:
        """Return the path in the cache of what `write` writes, whose checksum `write` returns.

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

    def _download(self, base_url: str, progress: Progress | None) -> Path:
        if urlsplit(base_url).scheme not in ("file", "http", "https"):
            raise ValueError(f"base_url must start with file://, http:// or https://, got {base_url!r}")
        url = base_url.rstrip("/") + "/" + quote(self.name)
        return self.keep(url, lambda output: self._receive(url, output, progress))

    def _receive(self, url: str, output: IO[bytes], progress: Progress | None) -> str:
        """Write what the address serves and return its checksum."""
        digest, received = hashlib.sha256(), 0
        try:
            request = urllib.request.Request(url, headers={"User-Agent": "vennstream"})
            with _opener().open(request, timeout=TIMEOUT) as response:
                promised = int(response.headers.get("Content-Length") or self.size)
                # One block more than expected shows that it is another file; the rest is not read.
                while received <= self.size and (block := response.read(1 << 16)):
                    output.write(block)
                    digest.update(block)
                    received += len(block)
                    if progress is not None:
                        progress(received, self.size)
        except urllib.error.HTTPError as error:
            error.close()
            raise OSError(f"cannot download {url}: the server answers {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            raise OSError(f"cannot download {url}: {error}") from error
        if received < promised and received <= self.size:
            raise OSError(f"cannot download {url}: it ended after {received} of {promised} bytes")
        return digest.hexdigest()


def address(base_url: str | None) -> str | None:
    """Return the address that serves files, the one given or $STREAMS_URL; None without one."""
    return base_url or os.environ.get("STREAMS_URL")


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


def _opener() -> urllib.request.OpenerDirector:
    # The default opener also follows redirections to ftp.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.FileHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener
