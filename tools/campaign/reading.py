"""Files of anything: readers give examples and messages, or say what is wrong where; nothing else leaves them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

import streams

from .tally import Tally

PIECES = [
    b",", b"\n", b"\r\n", b'"', b"'", b"1", b"-2.5", b"1e308", b"1e999", b"nan", b"inf", b"?", b"", b"a", b"label",
    b"\0", b"\xff", b"\xef\xbb\xbf", "ä".encode(), b";", b"\t", b" ", b"NA", b"1_0", b"0x1", b"1,2", b"\n\n", b"\r",
    b"\x1a", b"9" * 400, b'""', "１".encode(), b"#", b"\\", b"\x85", "\u2028".encode(),
]  # fmt: skip


def junk(rng: np.random.Generator, good: bytes) -> bytes:
    """Return a good file with some bytes or pieces changed, or pieces alone."""
    if rng.random() < 0.2:
        return b"".join(PIECES[i] for i in rng.integers(len(PIECES), size=int(rng.integers(0, 30))))
    raw = bytearray(good)
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(len(raw) + 1))
        how = rng.integers(4)
        if how == 0 and place < len(raw):
            raw[place] ^= 1 << int(rng.integers(8))
        elif how == 1:
            raw[place:place] = PIECES[int(rng.integers(len(PIECES)))]
        elif how == 2:
            del raw[place : place + int(rng.integers(1, 12))]
        else:
            raw[place : place + 1] = PIECES[int(rng.integers(len(PIECES)))]
    return bytes(raw)


def table(rng: np.random.Generator) -> bytes:
    rows = [f"{v:.2g},{w},{k},{'xyz'[y]}" for v, w, k, y in zip(
        rng.normal(size=8), rng.integers(0, 3, 8), rng.choice(["p", "q"], 8), rng.integers(0, 3, 8), strict=True
    )]  # fmt: skip
    return ("a,b,c,label\n" + "\n".join(rows) + "\n").encode()


def trial(rng: np.random.Generator, tally: Tally) -> None:
    (read_csv if rng.random() < 0.5 else read_messages)(rng, tally)


def read_csv(rng: np.random.Generator, tally: Tally) -> None:
    content = junk(rng, table(rng))
    path = Path("in.csv.gz" if rng.random() < 0.1 else "in.csv")
    packed = gzip.compress(content) if path.suffix == ".gz" else content
    if path.suffix == ".gz" and rng.random() < 0.5:
        packed = junk(rng, packed)
    path.write_bytes(packed)
    schema = [None, {"c": streams.Nominal(), "a": streams.Numeric(missing="?", fill=0.0)}][int(rng.integers(2))]
    label = ["label", 3, -1, "a"][int(rng.choice(4, p=[0.7, 0.1, 0.1, 0.1]))]
    try:
        stream = streams.from_csv(path, label, schema=schema, scale=bool(rng.random() < 0.5))
    except (ValueError, TypeError) as error:
        named = "in.csv" in str(error) or "label" in str(error)
        tally.same(named, f"from_csv: a message without the file, {type(error).__name__}", (content, error))
        tally.note("csv refused")
        return
    tally.note("csv read")
    found = list(stream)
    tally.same(len(found) == len(stream), "from_csv: another number of examples", content)
    tally.same(
        all(np.isfinite(x).all() and y in stream.classes for x, y in found),
        "from_csv: not finite, or no class",
        content,
    )
    tally.same(
        all(np.array_equal(a[0], b[0]) for a, b in zip(found, stream, strict=True)),
        "from_csv: not the same twice",
        content,
    )


def read_messages(rng: np.random.Generator, tally: Tally) -> None:
    """Lines whole, and the same lines written piece by piece and read with restarts: the same messages."""
    lines = [json.dumps({"id": i, "x": [0.5, float(i)]} | ({"y": "a"} if i % 2 else {})).encode() for i in range(6)]
    csv = rng.random() < 0.5
    content = junk(rng, table(rng) if csv else b"\n".join(lines) + b"\n")
    path = Path("in.txt")

    def source(bad: list[object]) -> object:
        if csv:
            return streams.CSVRows(path, "label", follow=False, bad=bad.append)
        # Without names the first object read fixes how many values there are: after a restart it may be another.
        return streams.JSONLines(path, follow=False, bad=bad.append, form=streams.Form(["p", "q"]))

    path.write_bytes(content)
    bad: list[object] = []
    try:
        whole = [message for message in source(bad).messages() if message is not None]
    except (ValueError, streams.BadMessage) as error:
        tally.note("heading refused")
        tally.same("in.txt" in str(error), "a message without the file", (content, error))
        return
    tally.note("messages read")
    tally.same(all(isinstance(error, streams.BadMessage) for error in bad), "what is told as bad", bad)
    for message in whole:
        tally.same(
            message.x is not None or (message.id is not None and message.y is not None), "an empty message", content
        )
        json.dumps([message.id, message.y, message.position]).encode()
    # From any position on, the rest.
    if whole:
        at = int(rng.integers(len(whole)))
        rest = [m for m in source([]).messages(whole[at].position) if m is not None]
        tally.same([repr(m) for m in rest] == [repr(m) for m in whole[at + 1 :]], "after a restart, another rest",
                   (csv, content, at, rest, whole))  # fmt: skip
