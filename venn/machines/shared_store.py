"""Objects that several systems share: each is kept once, and a kernel row of each is computed once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from venn.machines.kernels import Kernel
from venn.machines.store import Content, ObjectStore
from venn.prediction import Floats


class SharedStore(ObjectStore):
    """A store of several systems, which all make the same changes in turn: only the first of them does the work.

    Parameters
    ----------
    kernels : sequence of Kernel
        Sparse objects are refused unless all kernels take them.

    Attributes
    ----------
    readers : list of KernelRows
        One for each kernel.
    """

    def __init__(self, kernels: Sequence[Kernel], scaled: bool = False) -> None:
        super().__init__(next((kernel for kernel in kernels if not hasattr(kernel, "sparse_row")), kernels[0]), scaled)
        self.readers = [KernelRows(self, kernel) for kernel in kernels]
        self._there: tuple[int, Content] | None = None  # the object put last, and where
        self._removed: Content = np.empty(0)

    def begin(self) -> None:
        """Forget the rows computed so far: another question, or a change, begins."""
        self._there = None
        for reader in self.readers:
            reader.forget()

    def expect(self, n: int, x: Content) -> None:
        """Compute the rows of a new object with n others, so that readers on several threads only copy them."""
        self.put(n, x)
        for reader in self.readers:
            reader.expect(n + 1, x)

    def put(self, place: int, x: Content) -> None:
        """Set the object at a place, unless that has been done."""
        if self._there is None or self._there[0] != place or self._there[1] is not x:
            super().put(place, x)
            self._there = place, x

    def remove(self, place: int, n: int) -> Content:
        """Remove one of n objects, unless that has been done, and return it."""
        if n == self.n:
            self._removed = super().remove(place, n)
        return self._removed

    def insert(self, place: int, n: int, x: Content) -> None:
        """Put back an object among n others, unless that has been done."""
        if n == self.n:
            super().insert(place, n, x)


class KernelRows:
    """The shared objects as one kernel sees them: to a system this is its store.

    The last row of a new object, and that of an old one, are kept until `forget`: the systems ask for the same ones.
    """

    def __init__(self, store: SharedStore, kernel: Kernel) -> None:
        self._store = store
        self.kernel = kernel
        self.put, self.keep, self.clear = store.put, store.keep, store.clear
        self.remove, self.insert = store.remove, store.insert
        self.forget()

    n = property(lambda self: self._store.n)
    features = property(lambda self: self._store.features)

    def forget(self) -> None:
        """Forget the rows computed so far."""
        self._new: tuple[int, Floats | None, Floats] | None = None
        self._old: tuple[tuple[int, int], Floats | None, Floats] | None = None

    def expect(self, n: int, x: Content, reference: Floats | None = None) -> Floats:
        """Return the kernel of the new object with the first n objects; it is `x` until `forget`."""
        new = self._new
        if new is None or new[0] != n or not same(new[1], reference):
            new = n, reference, np.empty(n)
            self._store.row(n, x, new[2], reference, self.kernel)
            self._new = new  # complete: another thread may read it
        return new[2]

    def row(self, n: int, x: Content, out: Floats, reference: Floats | None = None) -> None:
        """Set `out[:n]` to the kernel of the new object with the first n objects; it is `x` until `forget`."""
        out[:n] = self.expect(n, x, reference)

    def row_of(self, place: int, n: int, out: Floats, reference: Floats | None = None) -> None:
        """Set `out[:n]` to the kernel of the object at a place with the first n."""
        old = self._old
        if old is None or old[0] != (place, n) or not same(old[1], reference):
            old = (place, n), reference, np.empty(n)
            self._store.row(n, self._store.at(place), old[2], reference, self.kernel)
            self._old = old  # complete: another thread may read it
        out[:n] = old[2]

    def row_with(self, n: int, x: Content, reference: Floats | None = None) -> Floats:
        """Return the (n + 1,) kernel of the new object `x` with the first n objects and itself, or refuse it."""
        new = self._new
        if new is None or new[0] != n + 1 or not same(new[1], reference):
            self._new = new = n + 1, reference, self._store.row_with(n, x, reference, self.kernel)
        return new[2]

    def nearer(self, n: int, x: Content, length: float) -> Floats | None:
        """Return a reference much nearer to `x`, or None, see `ObjectStore`."""
        return self._store.nearer(n, x, length, self.kernel)

    def trimmed(self, n: int) -> ObjectStore:
        """Return a store of its own that holds the first n objects without spare room."""
        return self._store.trimmed(n, self.kernel)


def same(one: Floats | None, other: Floats | None) -> bool:
    """Whether two references are one."""
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
