"""Documents of which a program writes a part, between two markers, and people the rest."""


def written(path, lines, script, title):
    """Write the lines between the markers of a file, which keeps what people wrote around them.

    Parameters
    ----------
    path : Path
        A file with both markers, or one to be made.
    lines : sequence of str
    script : str
        Named in the first marker.
    title : str
        Of a new file.

    Raises
    ------
    ValueError
        The file is there, without the markers; it stays as it is.
    """
    first, last = f"<!-- tables: written by {script} -->", "<!-- end of the tables -->"
    text = path.read_text() if path.exists() else f"# {title}\n\n{first}\n{last}\n"
    before, found, rest = text.partition(first)
    if not found or last not in rest:
        raise ValueError(f"{path} must have the lines {first!r} and {last!r}, between which the tables go")
    after = rest.partition(last)[2]  # other programs may write other parts of the file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([before + first, "", *lines, "", last + after]))
