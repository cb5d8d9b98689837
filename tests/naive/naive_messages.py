"""Which messages of a stream count, said slowly: a question once, an answer to a question that waits."""


def that_count(messages, classes, width):
    """Return the messages that change something, each as much of it as does.

    Parameters
    ----------
    messages : list of dict
        With "id", "x", "y" or some of these.
    classes : sequence of str
    width : int
        Number of values of an object.
    """
    asked, waiting, counting = set(), set(), []
    for message in messages:
        id, x, y = message.get("id"), message.get("x"), message.get("y")
        # Not a message at all: bad.
        if x is None and y is None:
            continue
        if x is None and id is None:
            continue
        if id is not None and (isinstance(id, (bool, float, list)) or id == ""):
            continue
        if x is not None and not (isinstance(x, list) and len(x) == width):
            continue
        # Many programs write numbers as text.
        if x is not None and not all(type(value) in (int, float) or value == "1" for value in x):
            continue
        if y is not None and y not in classes:
            continue
        if x is not None:
            number = len(asked) + 1 if id is None else id
            if number in asked:
                continue
            asked.add(number)
            waiting.add(number)
            if y is None:
                counting.append({"id": number, "x": x})
            else:
                counting.append({"id": number, "x": x, "y": y})
                waiting.remove(number)
        elif id in waiting:
            waiting.remove(id)
            counting.append({"id": id, "y": y})
    return counting
