"""Late labels, slowly: every prediction by a predictor made anew that learns all answers so far, in their order."""


def predictions(make, events):
    """Return what is said at each question; `make()` gives a predictor that has learned nothing."""
    asked, learned, said = {}, [], []
    for event in events:
        if len(event) == 3:  # ("ask", id, x)
            _, id, x = event
            model = make()
            for example in learned:
                model.learn_one(*example)
            said.append(model.predict_one(x))
            asked[id] = x
        else:
            id, y = event
            learned.append((asked[id], y))
    return said


def now(make, events):
    """Return what would be said of each object as its answer comes, from the answers before it."""
    asked, learned, said = {}, [], []
    for event in events:
        if len(event) == 3:
            asked[event[1]] = event[2]
            continue
        id, y = event
        model = make()
        for example in learned:
            model.learn_one(*example)
        said.append(model.predict_one(asked[id]))
        learned.append((asked[id], y))
    return said
