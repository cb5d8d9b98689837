"""The file of a checkpoint: written whole or not at all; whatever is wrong with it is a ValueError, and no more."""

import contextlib
import io
import json
import os
import random
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from test_checkpoint import SUBJECTS
from test_contract import CLASSES, MACHINES, PARAMETERS
from test_monitor_contract import RUNNING, stepped

import venn
from tools import hostile_checkpoints
from venn.online import checkpoint, files
from venn.online.checkpoint import pack, unpack
from venn.saved import KINDS


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "x.npz"
    venn.save(path, {"old": 1})
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, full)
            with pytest.raises(OSError, match="No space"):
                venn.save(path, {"new": np.arange(1000)})
        assert path.read_bytes() == before
        assert [file.name for file in path.parent.iterdir()] == ["x.npz"]
    venn.save(path, {"new": 2})
    assert venn.load(path) == {"new": 2}
    with pytest.raises(FileNotFoundError):
        venn.load(tmp_path / "none.npz")


def test_a_file_is_what_pack_returns_and_numpy_can_read_it(tmp_path):
    thing = {"x": np.arange(5.0), "y": MACHINES["LeastSquaresSVM"]()}
    venn.save(tmp_path / "x.npz", thing)
    assert (tmp_path / "x.npz").read_bytes() == pack(thing)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert json.loads(file["header"].tobytes())["format"] == "venn checkpoint"
        assert np.array_equal(file["array_0"], thing["x"])


def test_arrays_are_neither_written_nor_read_by_way_of_a_copy(tmp_path):
    large = np.arange(5_000_000.0).reshape(2000, -1)
    things = {"rows": large, "columns": large.T, "some": large[:, ::2]}
    tracemalloc.start()
    venn.save(tmp_path / "x.npz", things)
    written = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    again = venn.load(tmp_path / "x.npz")
    read = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert written < 0.5 * large.nbytes  # blocks of 16 MiB at most
    assert read < 2.6 * large.nbytes  # the arrays themselves are 2.5
    for name, one in things.items():
        assert np.array_equal(again[name], one)
        assert again[name].flags.writeable
    assert again["columns"].flags.f_contiguous


SMALL = pack({"rng": np.random.default_rng(0), "x": np.arange(3.0), "z": [1.5, "text", (None,)]})


def refused_or_the_same(damaged):
    """Whether damaged data are refused; else, what they hold must be what was saved."""
    try:
        again = unpack(bytes(damaged))
    except ValueError as error:
        if "the data is not a readable checkpoint" not in str(error):
            raise
        return True
    assert pack(again) == SMALL
    return False


def test_every_flipped_bit_is_found_or_changes_nothing():
    """Of a zip file some fields mean nothing here: dates, rights, versions."""
    rng = random.Random(0)
    refused = 0
    for position in range(len(SMALL)):
        damaged = bytearray(SMALL)
        damaged[position] ^= 1 << rng.randrange(8)
        refused += refused_or_the_same(damaged)
    assert refused > 0.7 * len(SMALL)


@given(st.integers(0, len(SMALL) - 1), st.integers(0, len(SMALL)), st.integers(0, len(SMALL)))
@settings(max_examples=60, deadline=None)
def test_truncated_and_spliced_files_are_refused_or_hold_the_whole(end, start, stop):
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        unpack(SMALL[:end])
    for damaged in (SMALL[:end] + SMALL[start:stop], SMALL[end + 1 :], SMALL + SMALL[start : stop + 1] + b"x"):
        refused_or_the_same(damaged)


def test_members_in_each_others_place_are_found():
    thing = {"x": np.arange(3.0), "y": np.arange(3.0, 6.0)}
    data = pack(thing)
    one, other = thing["x"].tobytes(), thing["y"].tobytes()
    swapped = data.replace(one, b"?" * len(one)).replace(other, one).replace(b"?" * len(one), other)
    with pytest.raises(ValueError, match="Bad CRC-32"):
        unpack(swapped)
    one, other = b"array_0.npy", b"array_1.npy"
    swapped = data.replace(one, b"?" * len(one)).replace(other, one).replace(b"?" * len(one), other)
    with pytest.raises(ValueError, match="checksum"):
        unpack(swapped)


def test_what_members_claim_is_compared_with_the_file_before_anything_is_allocated():
    claims = 300_000_000
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (claims,)})
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("array_0.npy", head.getvalue() + bytes(8))
        crc = file.getinfo("array_0.npy").CRC
        header = np.frombuffer(json.dumps({"crc32": {"array_0": crc}}).encode(), np.uint8)
        with file.open("header.npy", "w") as member:
            np.lib.format.write_array(member, header)
    by_header = content.getvalue()
    directory = by_header.index(b"PK\1\2")  # where zip keeps the sizes of members, 20 bytes on
    by_directory = bytearray(by_header)
    by_directory[directory + 20 : directory + 28] = struct.pack("<2I", 8 * claims, 8 * claims)
    for data, message in ((by_header, "shape .* over 8 bytes"), (by_directory, "claim more bytes than the file has")):
        tracemalloc.start()
        with pytest.raises(ValueError, match=message):
            unpack(bytes(data))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 1_000_000


def forged(**fields):
    header, arrays = files.read(io.BytesIO(SMALL))
    return hostile_checkpoints.packed(header | fields, arrays)


def test_other_versions_are_refused_or_migrated(monkeypatch):
    this = checkpoint.VERSION
    for version in (0, 1, 2, this + 1, "1", None, 1.0, True):
        with pytest.raises(ValueError, match=f"has version {version!r}, this program reads {this}"):
            unpack(forged(version=version))

    def migrated(header, members):
        return header | {"version": this, "root": [header["root"], "from version 0"]}, members

    monkeypatch.setitem(checkpoint.MIGRATIONS, 0, migrated)
    assert unpack(forged(version=0))[1] == "from version 0"
    with pytest.raises(ValueError, match=f"has version -1, this program reads {this}"):
        unpack(forged(version=-1))


test_forged_headers_are_refused = refused(lambda fields: unpack(forged(**fields)), [
    ({"format": "venn record"}, "does not say 'venn checkpoint'"), ({"root": {"object": 7}}, "object 7 of 1"),
    ({"root": {"pickle": "x"}}, "as a value"), ({"root": None}, "belong to nothing"),
    ({"objects": None}, "as objects"),
    ({"objects": [{"class": "Popen", "parameters": {}, "state": {}}]}, "does not know, 'Popen'"),
    ({"objects": [{"class": "os.system", "parameters": {"command": "true"}, "state": {}}]}, "does not know"),
    ({"objects": [{"class": "RBF", "parameters": {"gamma": -1.0}, "state": {}}]}, "object 0, RBF: gamma must"),
    ({"objects": [{"class": "RBF", "parameters": {"gamma": 1.0, "x": 1}, "state": {}}]}, "parameters must"),
    ({"objects": [{"class": "RBF", "parameters": {"gamma": 1.0}, "state": {"row": 1}}]}, "state must"),
    ({"objects": [{"class": "Generator", "parameters": {"bits": "seed"}, "state": {}}]}, "bits must"),
    ({"models": [["a", 1]]}, "as models"), ({"copies": {"b": "none"}}, "as copies"),
    ({"copies": {"b": []}}, "unhashable"), ({"copies": {"array_0": "array_0"}}, "as copies"),
    ({"copies": {f"b{i}": "array_0" for i in range(9)}}, "more than 8 copies"),
    ({"copies": {"b": "array_0"}}, "belong to nothing"),
], kind=ValueError)  # fmt: skip


def test_positions_of_generators_are_checked():
    """numpy takes any, and reads beyond its buffer."""
    for bits, name in (("MT19937", "pos"), ("Philox", "buffer_pos")):
        header, arrays = files.read(io.BytesIO(pack(np.random.Generator(getattr(np.random, bits)(0)))))
        text = json.dumps(header["objects"])
        found = f'["{name}", '
        start = text.index(found) + len(found)
        end = text.index("]", start)
        changed = json.loads(text[:start] + "100000" + text[end:])
        with pytest.raises(ValueError, match=r"state must be that of|must be between"):
            unpack(hostile_checkpoints.packed(header | {"objects": changed}, arrays))


@pytest.mark.parametrize("name", MACHINES)
def test_no_number_that_a_machine_keeps_may_be_none(name):
    machine = MACHINES[name]()
    for i in range(6):
        machine.learn_one([float(i), float(i % 2)], CLASSES[i % len(CLASSES)])
    state = machine.state
    for key, value in state.items():
        if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.size:
            spoilt = value.copy()
            spoilt.flat[-1] = np.nan
            with pytest.raises(ValueError, match=r"finite|must"):
                type(machine).made_of(machine.parameters).restore(state | {key: spoilt})
    type(machine).made_of(machine.parameters).restore(state)


@pytest.fixture(scope="module")
def hostile():
    return hostile_checkpoints.checkpoints()


@pytest.mark.parametrize("name", hostile_checkpoints.SUBJECTS)
def test_forged_files_are_refused_or_read_and_nothing_worse(name, hostile):
    """Right checksums, wrong numbers: a longer run is `python -m tools.hostile_checkpoints`, in its own process."""
    rng, outcomes = random.Random(name), []
    with np.errstate(all="ignore"):
        while len(outcomes) < 4:
            try:
                data = hostile_checkpoints.damaged(hostile[name], rng)
            except (ValueError, KeyError, IndexError, TypeError, OverflowError):
                continue  # what cannot even be written
            outcomes.append(hostile_checkpoints.outcome(data))
    assert "refused" in outcomes


def test_the_path_is_named(tmp_path):
    path = Path(tmp_path) / "no.npz"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"no\.npz is not a readable checkpoint"):
        venn.load(path)


def test_an_error_of_writing_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / f"{'m' * 250}.venn"
    with pytest.raises(OSError, match="too long") as refused:
        venn.save(path, {"new": 1})
    assert refused.value.filename == str(path)
    assert not [*tmp_path.iterdir()]


def test_a_memory_of_more_steps_than_the_file_has_bytes_comes_back():
    watch = venn.monitors.FloorWatch(0.9, memory=10_000)
    watch.update(1.0)
    again = unpack(pack(watch))
    for one in (watch, again):
        for _ in range(300):
            one.update(0.0)
    assert again.mean(10_000) == 1 / 301
    assert pack(again) == pack(watch)


HUGE = 300_000_000
APART = {*MACHINES, *RUNNING, *PARAMETERS} - {"SlidingWindow"}


def numbered(value, path=()):
    """Yield where integers stand in JSON that refer to nothing else in it."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        if type(one) is int and key != "object":
            yield (*path, key)
        elif key not in ("bytes", "dict"):
            yield from numbered(one, (*path, key))


FORGED = set()


@pytest.mark.parametrize("kind", ["parameters", "state"])
@pytest.mark.parametrize("name", [*SUBJECTS, *RUNNING, *PARAMETERS, "columns", "class drift", "numbers"])
def test_a_forged_number_makes_no_room(name, kind):
    """What a header declares is compared with the bytes of the file before anything of that size is made."""
    if name in hostile_checkpoints.SUBJECTS:
        things = [hostile_checkpoints.SUBJECTS[name]()]
    elif name in RUNNING:
        things = [stepped(name, 0)]
    elif name in SUBJECTS:
        things = [SUBJECTS[name]()]
    else:
        things = [thing for thing in PARAMETERS[name]() if name in KINDS]
    for thing in things:
        header, arrays = files.read(io.BytesIO(pack(thing)))
        del header["crc32"]
        for number, described in enumerate(header["objects"]):
            if number != header["root"].get("object") and described["class"] in APART:
                continue  # forged by itself
            for path in numbered(described[kind]):
                if (described["class"], kind, *path) in FORGED:
                    continue  # in another object that holds one of this class
                FORGED.add((described["class"], kind, *path))
                forged = json.loads(json.dumps(header))
                at = forged["objects"][number][kind]
                for key in path[:-1]:
                    at = at[key]
                at[path[-1]] = HUGE
                data = files.packed(forged, arrays)
                tracemalloc.start()
                try:
                    with contextlib.suppress(ValueError):
                        unpack(data)
                    assert tracemalloc.get_traced_memory()[1] < 64 << 20, path
                finally:
                    tracemalloc.stop()
