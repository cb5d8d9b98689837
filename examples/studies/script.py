"""What the scripts of all studies do: many tasks, perhaps in several processes, a bar, a figure if it can be drawn."""

from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from studies.store import Store


def results(work, parts, folder, jobs=1, done=lambda task: None):
    """Do what is missing of all tasks; return what each gave, by task, and how many results were computed.

    Parameters
    ----------
    work : callable
        ``work(task, store)``; one that other processes can import, and `functools.partial` of it.
    parts : sequence of lists of tasks
        A part begins when the one before it has ended.
    folder : path
        Where results are kept, by a `Store`.
    jobs : int
        Processes.
    done : callable
        Called with each task after it.
    """
    one, found, computed = partial(_alone, work, folder), {}, 0
    with ExitStack() as stack:
        each = stack.enter_context(get_context("spawn").Pool(jobs)).imap_unordered if jobs > 1 else map
        for task, given, new in (answer for part in parts for answer in each(one, part)):
            found[task] = given
            computed += new
            done(task)
    return found, computed


def _alone(work, folder, task):
    """Do a task on one thread; return it, what it gave, and how many results were computed."""
    store = Store(folder)
    with threadpool_limits(1):
        return task, work(task, store), store.computed


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
