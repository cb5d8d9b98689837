"""What the scripts of all studies do: many tasks, perhaps in several processes, a bar, a figure if it can be drawn."""

from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def in_processes(work, parts, jobs):
    """Yield ``work(task)`` for every task: of one part after the other, within a part as they are done.

    Parameters
    ----------
    work : callable
        One that other processes can import.
    parts : sequence of lists of tasks
    jobs : int
        Processes.
    """
    if jobs == 1:
        yield from (work(task) for part in parts for task in part)
        return
    with get_context("spawn").Pool(jobs) as pool:
        for part in parts:
            yield from pool.imap_unordered(work, part)


@contextmanager
def bar(folder, total=None, width=28):
    """Show a bar on stderr, and give a function that moves it by one and shows what is being done.

    Parameters
    ----------
    folder : path
        Where results are kept: whoever interrupts the block is told so.
    total : int, optional
        Number of steps, if it is known.
    width : int
        Characters of the text.
    """
    columns = TextColumn(f"{{task.description:<{width}}}"), BarColumn(), MofNCompleteColumn()
    try:
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as progress:
            task = progress.add_task("starting", total=total)
            yield lambda what: progress.update(task, advance=1, description=what)
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; results so far are in {folder}: the same command continues") from None


def figure(module, path, *results):
    """Draw the figure of a study by ``draw(*results, path)`` of this module, and say where it is; needs matplotlib."""
    try:
        import_module(module).draw(*results, path)
        print(f"figure: {path}")
    except ImportError as error:
        print(f"no figure: {error}")
