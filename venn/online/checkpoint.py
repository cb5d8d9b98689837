"""Save everything that learns in one file, and load it: it then continues as if never interrupted, to the bit."""

from __future__ import annotations

import base64
import io
import json
import math
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from venn.machines.reference_answers import AnotherModel
from venn.online import files
from venn.parameters import members, path_of
from venn.saved import Saved, checked_keys, described, is_saved, kind_named, made_again, saved, taken_apart
from venn.turns import turn_of

FORMAT = "venn checkpoint"
VERSION = 3
FLOOR = 1 << 12  # room for so many entries is allowed whatever the size of a file
COMPARED = 1 << 16  # bytes of an array, at most, that is compared with others, for equal ones are written once
COPIES = 8  # that stand for one array, at most: a small file must not fill the memory
PLAIN = frozenset({bool, int, str})  # of whose values the JSON is the value itself
ANEW = ". To calibrate this one, make the predictor anew with it"
#: By an older version: what turns header and members into those of the next one. None: version 1, of venn 0.2, and 2,
#: of 0.3, hold other parameters of what is fitted. A journal goes on without its old checkpoints: all is learned again.
MIGRATIONS: dict[int, Callable[[dict[str, Any], dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]]] = {}


def save(path: str | os.PathLike[str], thing: Any) -> None:
    """Write a predictor, machine, monitor or other object to one file, with all that it has learned.

    The file is an npz archive without pickled objects: arrays, a JSON header, checksums. It appears whole or not at
    all, and equal states make equal bytes, but for what given scorers said of a few objects. What can be recomputed to
    the last bit is left out: spare room, intermediate values, remembered answers.

    Parameters
    ----------
    path : str or path
        Used as it is; no suffix is added. Missing folders are made.
    thing : object
        A predictor, `Panel`, machine, monitor, martingale, detector, bound, calibrator, prediction, parameter object or
        `numpy.random.Generator`; or dicts, lists, tuples, sets and deques of these, of numbers, text, bytes and
        arrays. An object that occurs twice, such as a machine that several predictors share, is saved once and is one
        object again when loaded; the same holds for arrays, but not for lists and dicts. Small arrays that are equal to
        the bit are written once.

    Raises
    ------
    TypeError
        It holds something else, such as a function or an object of a user's own class. The message says where.
        Of fitted scikit-learn estimators only their class and repr are saved, and what they said of the first objects
        that they were asked about, 64 at most, which the file holds as well: see `load`. Or `path` is not a path.
    ValueError
        It holds itself.

    Examples
    --------
    >>> import tempfile, venn
    >>> model = venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"]))
    >>> model.learn_one([0.0], "no")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     venn.save(f"{folder}/model.npz", model)
    ...     again = venn.load(f"{folder}/model.npz")
    >>> again.machine.n
    1
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or path, and comes first: venn.save(path, thing), got {path!r}")
    with turn_of(thing):
        Snapshot(thing).write(path)


def load(path: str | os.PathLike[str], models: Sequence[Any] = ()) -> Any:
    """Return what `save` wrote, as new objects that continue as the saved ones would have, to the last bit.

    Nothing in a file is ever executed, whoever wrote it.

    Parameters
    ----------
    path : str or path
    models : sequence of objects, optional
        The user's own estimators that the saved object held, such as that of a `FrozenScorer`, each once, in the order
        in which it held them; they are copied. A message says which are missing. Another model in the place of one is
        refused, by what both say of a few objects that the file holds (of the first 64 that were asked about).

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is no checkpoint, is damaged, holds what has not the form of a state, such as an index beyond its
        array, or was written by another version of the format; or `models` are not the ones that it needs. The message
        names the file. To calibrate a new model, make the predictor anew with it.

    Examples
    --------
    >>> import tempfile, venn
    >>> from pathlib import Path
    >>> model = venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), 1.0, (0, 1)))
    >>> model.learn_one([0.5], 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     venn.save(Path(folder, "model.venn"), model)
    ...     load(Path(folder, "model.venn")).machine.n
    1
    """
    with path_of("path", path).open("rb") as file:
        return _read(file, models, str(path))


class Snapshot:
    """What `save` would write of a thing: now, or after `copy`, whatever the thing learns meanwhile.

    Parameters
    ----------
    thing : object
        As for `save`, whose errors are raised here.
    """

    def __init__(self, thing: Any) -> None:
        self._header, self._arrays = _packed(thing, told=True)

    @property
    def size(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self._arrays.values())

    def copy(self) -> None:
        """Copy the arrays in the order in which they would be written; until then they are the thing's own."""
        self._arrays = {
            name: array.copy("F" if array.flags.fnc else "C")  # fnc: by columns and not by rows
            for name, array in self._arrays.items()
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file; it appears whole or not at all."""
        files.write(Path(path), self._header, self._arrays)


def models(thing: Any) -> list[Any]:
    """Return the user's own fitted models that a checkpoint of `thing` lacks, in the order that `load` needs."""
    packer = Packer()
    packer.value(thing, "thing")
    return packer.estimators


def pack(thing: Any) -> bytes:
    """Return as bytes what `save` would write to a file."""
    with turn_of(thing):
        return files.packed(*_packed(thing))


def unpack(data: bytes, models: Sequence[Any] = (), copied: bool = True) -> Any:
    """Return what `pack` has packed; errors are those of `load`. Models that are not `copied` are shared."""
    return _read(io.BytesIO(data), models, "the data", copied)


def _read(file: IO[bytes], models: Sequence[Any], name: str, copied: bool = True) -> Any:
    # Whatever zipfile, numpy, json or a constructor raises on a damaged or hostile file is one error here.
    try:
        return contents(file, models, copied)
    except AnotherModel as error:
        raise AnotherModel(f"{name} needs other models: {error}{ANEW}") from error
    except Exception as error:
        raise ValueError(f"{name} is not a readable checkpoint: {error}") from error


def contents(file: IO[bytes], models: Sequence[Any] = (), copied: bool = True) -> Any:
    """Return what a file holds, or raise: not always a ValueError, see `files.read`."""
    header, members = _current(*files.read(file))
    checked = checked_models(header.get("models"), models)
    return Unpacker(header, members, deepcopy(checked) if copied else checked, file.seek(0, os.SEEK_END)).root()


def _packed(thing: Any, told: bool = False) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    packer = Packer(told)
    try:
        root = packer.value(thing, "thing")
    except RecursionError:
        raise ValueError("thing must not be nested so deeply") from None
    header = {
        "format": FORMAT, "version": VERSION, "models": packer.models, "copies": packer.copies,
        "objects": packer.objects, "root": root,
    }  # fmt: skip
    return header, packer.arrays


def _current(header: dict[str, Any], members: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and members in the form of this version."""
    if header.get("format") != FORMAT:
        raise ValueError(f"its header does not say {FORMAT!r}, but {header.get('format')!r}")
    version = header.get("version")
    while type(version) is not int or version != VERSION:
        migrate = MIGRATIONS.get(version) if type(version) is int else None
        if migrate is None:
            raise ValueError(
                f"its format has version {version!r}, this program reads {VERSION}: install the version of venn that "
                "wrote it, or learn again"
            )
        header, members = migrate(header, members)
        version = header["version"]
    return header, members


@saved
class Generator(Saved):
    """What is saved of one of numpy's generators: the state of its bits, without what `spawn` would give."""

    KINDS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
    #: Positions in their buffers: numpy does not check them.
    POSITIONS: ClassVar = {"MT19937": ("pos", 624), "Philox": ("buffer_pos", 4)}

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    @property
    def parameters(self) -> dict[str, Any]:
        """The kind of bit generator."""
        return {"bits": type(self.generator.bit_generator).__name__}

    @property
    def state(self) -> dict[str, Any]:
        """The state of the bit generator."""
        return {"state": self.generator.bit_generator.state}

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Generator:
        """Return a generator with a bit generator of that kind."""
        checked_keys("parameters", parameters, ("bits",))
        if parameters["bits"] not in cls.KINDS:
            raise ValueError(f"bits must be one of {', '.join(cls.KINDS)}, got {parameters['bits']!r}")
        return cls(np.random.Generator(getattr(np.random, parameters["bits"])(0)))

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        super().restore(state)
        bits, wanted = self.generator.bit_generator, state["state"]
        bits.state = wanted  # what comes back differs if numpy has read some of it as something else
        found = bits.state
        place, most = self.POSITIONS.get(found["bit_generator"], ("has_uint32", 1))
        position = found[place] if place in found else found["state"][place]
        if not _same(found, wanted) or not 0 <= position <= most:
            raise ValueError(f"state must be that of a {found['bit_generator']}, got {wanted!r}")


def _same(first: Any, second: Any) -> bool:
    """Whether both have the same keys, types, shapes and values throughout."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    return bool(first == second)


class Packer:
    """Turns an object into JSON and arrays, children first.

    Parameters
    ----------
    told : bool, default False
        Also what given models said of a few objects, which is no part of a state.

    Attributes
    ----------
    objects : list of JSON objects
        Each refers to earlier ones by number.
    arrays : dict
    copies : dict
        Names of further arrays, and that of the one in `arrays` to which each is equal to the bit.
    models : list of [class, repr]
    """

    def __init__(self, told: bool = False) -> None:
        self._told = told
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        self.copies: dict[str, str] = {}
        self.models: list[list[str]] = []
        self.estimators: list[Any] = []  # the models themselves
        self._known: dict[int, dict[str, Any]] = {}
        self._equal: dict[Any, list[str]] = {}  # by content, the names of equal arrays
        self._open: set[int] = set()
        self._alive: list[Any] = []  # an id identifies an object only while that lives

    def value(self, thing: Any, where: str) -> Any:
        """Return JSON for the value at `where`."""
        kind = type(thing)
        if thing is None or kind in PLAIN:
            return thing
        if kind is float:
            return thing if math.isfinite(thing) else {"float": repr(thing)}
        if kind is bytes:
            return {"bytes": base64.b64encode(thing).decode()}
        if isinstance(thing, np.generic) and thing.dtype.kind in "biufcSUmM":
            return {"scalar": thing.dtype.str, "bytes": base64.b64encode(thing.tobytes()).decode()}
        if id(thing) in self._known:
            return self._known[id(thing)]
        if id(thing) in self._open:
            raise ValueError(f"{where} must not hold itself, got {kind.__name__}")
        self._open.add(id(thing))
        self._alive.append(thing)
        try:
            packed = self._container(thing, where)
            if packed is None:
                packed = self._known[id(thing)] = self._shared(thing, where)
        finally:
            self._open.discard(id(thing))
        return packed

    def _container(self, thing: Any, where: str) -> Any:
        kind = type(thing)
        if kind is list:
            return self._items(thing, where)
        if kind is tuple:
            return {"tuple": self._items(thing, where)}
        if kind is dict:
            return {
                "dict": [
                    [self.value(key, f"a key of {where}"), self.value(one, f"{where}[{key!r}]")]
                    for key, one in thing.items()
                ]
            }
        if kind is deque:
            return {"deque": self._items(thing, where), "most": thing.maxlen}
        if kind in (set, frozenset):
            return {kind.__name__: sorted((self.value(one, f"a member of {where}") for one in thing), key=json.dumps)}
        return None

    def _items(self, things: Iterable[Any], where: str) -> list[Any]:
        """Return JSON for each of the values; that of plain ones is themselves, most of them are numbers."""
        return [
            one if (type(one) is float and one - one == 0.0) or type(one) in PLAIN else self.value(one, f"{where}[{i}]")
            for i, one in enumerate(things)
        ]

    def _shared(self, thing: Any, where: str) -> dict[str, Any]:
        if type(thing) is np.ndarray and thing.dtype.kind in "biufcSUmM":
            return {"array": self._array(thing)}
        if isinstance(thing, np.random.Generator):
            thing = Generator(thing)
        if not is_saved(thing):
            what = "a function" if callable(thing) and hasattr(thing, "__code__") else f"a {type(thing).__name__}"
            raise TypeError(
                f"{where} must be plain data, or of a class of this package or one of yours with the decorator "
                f"venn.saved.component, for a checkpoint holds no code; got {what}: {thing!r}"
            )
        parameters, state = taken_apart(thing)
        foreign = getattr(thing, "foreign", ())
        described: dict[str, Any] = {"class": type(thing).__name__}
        for part, values in (("parameters", parameters), ("state", state)):
            described[part] = {
                name: self._model(one) if name in foreign and one is not None else self.value(one, f"{where}.{name}")
                for name, one in values.items()
            }
        told = getattr(thing, "told", None) if foreign and self._told else None
        if told:
            described["told"] = self.value(told, f"{where}.told")
        self.objects.append(described)
        return {"object": len(self.objects) - 1}

    def _array(self, values: NDArray[Any]) -> str:
        """Return the name of an array, which is written unless an equal one is."""
        name, equal = f"array_{len(self.arrays) + len(self.copies)}", list[str]()
        if values.nbytes <= COMPARED:
            bits = blake2b(values.tobytes(), digest_size=32).digest()
            equal = self._equal.setdefault((values.dtype.str, values.shape, values.flags.fnc, bits), [])
        if len(equal) % (COPIES + 1):
            self.copies[name] = equal[-(len(equal) % (COPIES + 1))]
        else:
            self.arrays[name] = values
        equal.append(name)
        return name

    def _model(self, estimator: Any) -> dict[str, int]:
        """Return JSON for a user's own estimator, which is not saved."""
        for number, one in enumerate(self.estimators):
            if one is estimator:
                return {"model": number}
        owner = type(estimator)
        self.estimators.append(estimator)
        self.models.append([f"{owner.__module__}.{owner.__qualname__}", described(estimator)])
        return {"model": len(self.models) - 1}


class Unpacker:
    """Rebuilds the objects from a header and its members."""

    def __init__(self, header: dict[str, Any], members: dict[str, Any], models: Sequence[Any], most: int) -> None:
        self._header = header
        self._most = max(most, FLOOR)
        self._members = members | _copies(header.get("copies", {}), members)
        self._objects: list[Any] = []
        self._used: set[str] = set()
        self._models = models

    def root(self) -> Any:
        """Return the saved object."""
        objects = self._header.get("objects")
        if not isinstance(objects, list):
            raise ValueError(f"its header has {objects!r} as objects")
        with np.errstate(all="ignore"):
            for number, described in enumerate(objects):
                self._objects.append(self._made(number, described))
            root = self.value(self._header.get("root"))
        left = self._members.keys() - self._used
        if left:
            raise ValueError(f"it has arrays that belong to nothing: {sorted(left)}")
        return root

    def _made(self, number: int, described: Any) -> Any:
        if not isinstance(described, dict) or described.keys() - {"told"} != {"class", "parameters", "state"}:
            raise ValueError(f"object {number} is not described by class, parameters and state")
        name = described["class"]
        kind: Any = kind_named(name) if isinstance(name, str) else None
        if kind is None:
            raise ValueError(f"object {number} is of a class that this program does not know, {name!r}")
        foreign = getattr(kind, "foreign", ())
        parts = []
        for part in ("parameters", "state"):
            if not isinstance(described[part], dict):
                raise ValueError(f"object {number}, {name}, has {described[part]!r} as {part}")
            parts.append(
                {
                    key: self._model(one) if key in foreign and one is not None else self.value(one)
                    for key, one in described[part].items()
                }
            )
        try:
            self._check_sizes(kind, parts[0])
            thing = made_again(kind, *parts)
            if "told" in described:
                thing.recall(self.value(described["told"]))
        except AnotherModel:
            raise
        except Exception as error:
            raise ValueError(f"object {number}, {name}: {error or type(error).__name__}") from error
        return thing.generator if isinstance(thing, Generator) else thing

    def _check_sizes(self, kind: type, parameters: dict[str, Any]) -> None:
        """Refuse parameters for which a constructor would allocate more than the whole file could fill."""
        for name in getattr(kind, "sized", ()):
            value = parameters.get(name)
            if type(value) is int and value > self._most:
                raise ValueError(f"{name} must be at most {self._most}, the bytes of the file, got {value}")

    def _model(self, described: Any) -> Any:
        """Return the estimator that the caller gave in place of one that was not saved."""
        number = described.get("model") if isinstance(described, dict) and len(described) == 1 else None
        if type(number) is not int or not 0 <= number < len(self._models):
            raise ValueError(f"its header has {str(described)[:80]!r} for one of {len(self._models)} models")
        return self._models[number]

    def value(self, packed: Any) -> Any:
        """Return the value that the JSON describes."""
        if packed is None or isinstance(packed, bool | int | str):
            return packed
        if isinstance(packed, float):
            if not math.isfinite(packed):
                raise ValueError(f"its header has {packed!r} as a number")
            return packed
        if isinstance(packed, list):
            return [self.value(one) for one in packed]
        if isinstance(packed, dict) and packed:
            kind = next(iter(packed))
            if kind in GATHERED and len(packed) == 1:
                return GATHERED[kind](self._parts(packed[kind]))
            read = getattr(self, f"_read_{kind}", None) if kind in VALUES else None
            if read is not None and tuple(packed) == VALUES[kind]:
                return read(*packed.values())
        raise ValueError(f"its header has {str(packed)[:80]!r} as a value")

    def _read_float(self, text: Any) -> float:
        if text not in ("nan", "inf", "-inf"):
            raise ValueError(f"its header has {text!r} as a float")
        return float(text)

    def _read_bytes(self, text: Any) -> bytes:
        return base64.b64decode(text, validate=True)

    def _read_scalar(self, kind: Any, text: Any) -> Any:
        dtype = np.dtype(kind if isinstance(kind, str) else None)
        if dtype.kind not in "biufcSUmM" or dtype.str != kind:
            raise ValueError(f"its header has {kind!r} as the type of a number")
        content = base64.b64decode(text, validate=True)
        if len(content) != dtype.itemsize:
            raise ValueError(f"its header has {len(content)} bytes for a number of type {kind!r}")
        return np.frombuffer(content, dtype)[0] if dtype.itemsize else dtype.type()

    def _read_deque(self, parts: Any, most: Any) -> deque[Any]:
        if not (most is None or (type(most) is int and most >= 0)):
            raise ValueError(f"its header has {most!r} as the length of a deque")
        return deque(self._parts(parts), most)

    def _read_dict(self, pairs: Any) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for pair in self._parts(pairs):
            if not isinstance(pair, list) or len(pair) != 2 or pair[0] in made:
                raise ValueError(f"its header has {str(pair)[:80]!r} as a key and value")
            made[pair[0]] = pair[1]
        return made

    def _parts(self, parts: Any) -> list[Any]:
        if not isinstance(parts, list):
            raise ValueError(f"its header has {str(parts)[:80]!r} as a list")
        return [self.value(one) for one in parts]

    def _read_array(self, name: Any) -> NDArray[Any]:
        if not isinstance(name, str) or name not in self._members:
            raise ValueError(f"its header names an array {name!r} that is not there")
        self._used.add(name)
        return self._members[name]

    def _read_object(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise ValueError(f"its header refers to object {number!r} of {len(self._objects)} so far")
        return self._objects[number]


#: Collections whose JSON is their key and their members.
GATHERED: dict[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}

#: What a JSON object describes, by its first key; then all its keys, in order.
VALUES = {
    kind: (kind, *more)
    for kind, *more in (
        ("float",), ("bytes",), ("scalar", "bytes"), ("deque", "most"), ("dict",), ("array",), ("object",),
    )
}  # fmt: skip


def _copies(names: Any, members: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays by name that are copies of members."""
    if not isinstance(names, dict) or names.keys() & members.keys() or not {*names.values()} <= members.keys():
        raise ValueError(f"its header has {str(names)[:80]!r} as copies of arrays")
    if max(Counter(names.values()).values(), default=0) > COPIES:
        raise ValueError(f"its header names more than {COPIES} copies of an array")
    return {name: members[of].copy("K") for name, of in names.items()}


def checked_models(wanted: Any, models: Sequence[Any]) -> list[Any]:
    """Return the models in order, or say which are needed."""
    if not isinstance(wanted, list) or any(
        not isinstance(one, list) or len(one) != 2 or not all(isinstance(text, str) for text in one) for one in wanted
    ):
        raise ValueError(f"its header has {str(wanted)[:80]!r} as models")
    given = list(members("models", models, "objects"))
    found = [f"{type(one).__module__}.{type(one).__qualname__}" for one in given]
    if found != [kind for kind, _ in wanted]:
        asked = ", ".join(text for _, text in wanted) or "none"
        raise ValueError(
            f"models must be the {len(wanted)} that were not saved, in order: {asked}; got {given!r} "
            "(load(path, models=[...]) takes them)"
        )
    return given
