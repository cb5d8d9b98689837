"""The checksums of a journal's rows, by their definition: rows in, checksums out."""

from hashlib import blake2b


def checksum(token, values, contents=()):
    """Eight bytes of BLAKE2 of: the run's token, the values, the lengths of the contents, the contents."""
    said = ", ".join(repr(value) for value in (token, *values, *[len(content) for content in contents]))
    found = blake2b(f"({said})".encode() + b"".join(contents), digest_size=8).digest()
    number = sum(byte << 8 * place for place, byte in enumerate(found))
    return number - 2**64 if number >= 2**63 else number


def checksums(token, rows):
    """Return by table the checksums of its rows, which are those of the tables without their last column."""
    questions = [
        (("question", event, id, step, time), (x, said)) for event, id, time, step, x, said in rows["questions"]
    ]
    found = {
        "questions": [checksum(token, *one) for one in questions],
        "answers": [checksum(token, ("answer", e, step, q, truth, t)) for step, e, q, t, truth in rows["answers"]],
        "expired": [checksum(token, ("expiry", e, number, q, None, t)) for number, e, q, t in rows["expired"]],
    }
    beside = [table for table in rows if table not in found]
    return found | {table: [checksum(token, (table, *row)) for row in rows[table]] for table in beside}
