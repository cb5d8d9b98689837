"""
How do I run it on my own table?
================================

Writes a small CSV with a number, an ordered word and an unordered word in each row, declares what the
columns are, and replays it::

    python examples/own_csv.py
"""

import csv
import pathlib
import tempfile

import numpy as np

import streams
import venn

rng = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "orders.csv"
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["amount", "size", "country", "returned"])
        for _ in range(300):
            amount, size, country = rng.gamma(2.0, 30.0), rng.choice(["S", "M", "L"]), rng.choice(["cy", "de", "uk"])
            chance = 0.1 + 0.5 * (amount > 80) + 0.3 * (size == "L")
            table.writerow([f"{amount:.2f}", size, country, "yes" if rng.random() < chance else "no"])

    schema = {"size": streams.Ordinal(("S", "M", "L")), "country": streams.Nominal(("cy", "de", "uk"))}
    stream = streams.from_csv(path, label="returned", schema=schema, shuffle=0)
    print(stream, stream.features)
    machine = venn.OneVsAllSVM(venn.RBF(0.1), C=1, classes=stream.classes)
    record = venn.replay(stream, venn.TransductiveVenn(machine, venn.Argmax()))
    print(record.table())
