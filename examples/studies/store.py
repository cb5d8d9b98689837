"""Results that outlive an interruption: one small file each, found again by everything that they depend on."""

import hashlib
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

EDITION = 1  # to be raised when a result would come out otherwise with the same settings


def digest(*parts):
    """Return a short digest of arrays, or of anything that JSON or its `repr` can say."""
    sum_ = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            sum_.update(str((part.dtype, part.shape)).encode() + np.ascontiguousarray(part).tobytes())
        else:
            sum_.update(json.dumps(part, sort_keys=True, default=repr).encode())
    return sum_.hexdigest()[:20]


class Store:
    """A folder of results.

    Parameters
    ----------
    folder : path
        Made when the first result is written.

    Attributes
    ----------
    computed : int
        Number of results that were not there.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.computed = 0

    def of(self, title, key, compute):
        """Return the arrays that `compute` returns, computed now or kept from another time.

        Parameters
        ----------
        title : str
            What the file's name begins with, for people.
        key : dict
            All that the result depends on; another key is another result.
        compute : callable
            Returns a dict of arrays; `seconds`, those of the processor, is added.
        """
        path = self.folder / f"{title}-{digest({'edition': EDITION} | key)}.npz"
        if not path.exists():
            start = time.process_time()
            value = compute()
            value["seconds"] = np.float64(time.process_time() - start)
            self._write(path, value)
            self.computed += 1
        with np.load(path) as kept:
            return dict(kept)

    def _write(self, path, value):
        # Renamed when complete: whoever looks, at any time and from any process, finds the whole file or none.
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=path.stem, suffix=".part", dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez_compressed(file, **value)
            os.replace(part, path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
