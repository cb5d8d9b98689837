"""Labels that ripen, by their definition: which label each question gets, and before which event."""


def ripened(events, ripe, silent, by_time):
    """Return the events of a stream whose labels all come when they are ripe, and how many came too late.

    Events are ("ask", id, at) and ("label", id, y, at); so are those that are returned, without times. At each event
    the questions that are ripe by then get their labels first, in the order of the questions.
    """
    clock, out, asked, reports, done, late = float("-inf"), [], [], {}, set(), set()
    for what, id, *more in events:
        clock = max(clock, more[-1])
        for place, (one, since) in enumerate(asked):
            if one in done:
                continue
            if (clock - since if by_time else len(asked) - place - 1) < ripe:
                break
            done.add(one)
            out.append(("label", one, reports.get(one, silent)))
        if what == "ask":
            asked.append((id, clock))
            out.append(("ask", id))
        elif id not in done:
            reports[id] = more[0]
        elif reports.get(id) != more[0]:
            late.add(id)
    return out, len(late)
