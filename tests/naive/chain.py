"""The chain of checksums through a journal, by its definition: rows in, checksums out."""

from hashlib import blake2b


def checksum(before, values, contents=()):
    """Eight bytes of BLAKE2 of: what came before, the values, the lengths of the contents, the contents."""
    said = ", ".join(repr(value) for value in (before, *values, *[len(content) for content in contents]))
    found = blake2b(f"({said})".encode() + b"".join(contents), digest_size=8).digest()
    number = sum(byte << 8 * place for place, byte in enumerate(found))
    return number - 2**64 if number >= 2**63 else number


def chain(run, questions, answers, expired):
    """Return by event the checksum of each; 0 is the description of the run. Rows are those of the tables."""
    events = {}
    for event, id, time, step, x, predictions, _ in questions:
        events[event] = ("question", event, id, step, time), (x, predictions)
    for step, event, question, time, truth, _ in answers:
        events[event] = ("answer", event, step, question, truth, time), ()
    for number, event, question, time, _ in expired:
        events[event] = ("expiry", event, number, question, None, time), ()
    found = {0: checksum(0, ("run", *sorted(run)))}
    for event in sorted(events):
        found[event] = checksum(found[event - 1], *events[event])
    return found


def total(table, rows):
    """Return the sum of the checksums of rows beside the chain, as 64 bits with a sign."""
    found = sum(checksum(0, (table, *row[:-1])) for row in rows) % 2**64
    return found - 2**64 if found >= 2**63 else found
