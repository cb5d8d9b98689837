"""Change the core rooms in small ways, one at a time, and say which changes no test notices.

    python -m tools.coverage_without_compiler
    python -m tools.mutants --each 40 --seed 1 | tee drawn
    python -m tools.mutants --again drawn

The first command keeps which lines each test reaches. The second draws mutants at random from the lines that are
reached, with the compiler off, and gives each the tests that reach its line, quickest first, until one fails. No file
is written: the process collects the tests once; for each mutant a fork of it gets the changed code and runs. A test
that exceeds five times its usual processor time, and some seconds, has noticed. Only bodies of functions are changed,
no text, no annotation and no message. Survivors are printed with their line; whether one is equivalent, a reader says.
The third tries the survivors again, with tests that the first cut short or that are new, once its `--more` added them.

The tools of others do not fit: mutmut leaves out decorated functions, which all compiled loops are, and cosmic-ray runs
one command for all mutants, whatever tests reach them.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import importlib
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tools import ROOT
from tools.coverage_without_compiler import KEPT, ROOMS, function, sources

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip
PAIRS = [
    ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("floor", "ceil"), ("sum", "max"),
    ("amin", "amax"), ("zeros", "ones"), ("log1p", "log"), ("expm1", "exp"),
]  # fmt: skip
NAMES = {a: b for a, b in PAIRS} | {b: a for a, b in PAIRS if b != "max" or a == "min"}
SIDES = {"left": "right", "right": "left"}


class Mutant:
    """One change of one file: where it is, what it says, and the tree that has it."""

    def __init__(self, path: str, node: ast.AST, what: str, tree: ast.Module) -> None:
        self.path = path
        self.lines = range(node.lineno, node.end_lineno + 1)
        self.column = node.col_offset + 1
        self.what = what
        self.tree = tree

    def __str__(self) -> str:
        return f"{self.path}:{self.lines[0]}:{self.column}: {self.what}"


Step = tuple[ast.AST, str, int | None]  # from a node: the field, and the place in it, of one of its children


def places(tree: ast.Module) -> Iterator[tuple[list[Step], ast.AST]]:
    """Yield what may be changed, with the steps that lead to it from the module."""

    def within(node: ast.AST, steps: list[Step], inside: bool) -> Iterator[tuple[list[Step], ast.AST]]:
        for field, value in ast.iter_fields(node):
            if unchanged(node, field):
                continue
            for number, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr) or texts(child):
                    continue
                way = [*steps, (node, field, number)]
                if inside and hasattr(child, "lineno"):
                    yield way, child
                yield from within(child, way, inside or isinstance(child, ast.FunctionDef))

    return within(tree, [], False)


def unchanged(node: ast.AST, field: str) -> bool:
    """Return whether a field holds a signature, an annotation or a message."""
    return (isinstance(node, ast.FunctionDef) and field != "body") or (
        (type(node), field) in ((ast.AnnAssign, "annotation"), (ast.Raise, "exc"), (ast.Assert, "msg"))
    )


def texts(node: ast.AST) -> bool:
    """Return whether a function makes text for people."""
    return isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "__str__")


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield what may stand in the place of a node, with a word on it."""

    def new(**fields: object) -> ast.AST:
        changed = copy.copy(node)
        for name, value in fields.items():
            setattr(changed, name, value)
        return changed

    match node:
        case ast.Compare(ops=[operation]):
            for other in COMPARISONS[type(operation)]:
                yield new(ops=[other()]), f"{name(operation)} -> {name(other())}"
        case ast.BinOp(op=operation) | ast.AugAssign(op=operation) if type(operation) in ARITHMETIC:
            other = ARITHMETIC[type(operation)]()
            if not (isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant | ast.JoinedStr)
                    and not isinstance(getattr(node.left, "value", 0), int | float)):  # fmt: skip
                yield new(op=other), f"{name(operation)} -> {name(other)}"
        case ast.BoolOp(op=operation):
            other = ast.Or() if isinstance(operation, ast.And) else ast.And()
            yield new(op=other), f"{name(operation)} -> {name(other)}"
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand, f"{name(node.op)} dropped"
        case ast.Constant(value=bool(value)):
            yield new(value=not value), f"{value} -> {not value}"
        case ast.Constant(value=int(value) | float(value)):
            for other in (value + 1, value - 1):
                if other != value:  # as for 1e308
                    yield new(value=other), f"{value} -> {other}"
        case ast.Constant(value=str(value)) if value in SIDES:
            yield new(value=SIDES[value]), f"{value} -> {SIDES[value]}"
        case ast.Call(func=ast.Name(id="range"), args=arguments) if arguments and not node.keywords:
            last = min(1, len(arguments) - 1)
            for place in {0, last}:
                for operation in (ast.Add(), ast.Sub()):
                    other = list(arguments)
                    other[place] = ast.BinOp(arguments[place], operation, ast.Constant(1))
                    yield new(args=other), f"range: argument {place} {name(operation)} 1"
        case ast.Call(func=ast.Name(id=called)) if called in NAMES:
            yield new(func=ast.Name(NAMES[called], ast.Load())), f"{called} -> {NAMES[called]}"
        case ast.Call(func=ast.Attribute(attr=called) as attribute) if called in NAMES:
            other = ast.Attribute(attribute.value, NAMES[called], ast.Load())
            yield new(func=other), f"{called} -> {NAMES[called]}"
        case ast.IfExp(body=body, orelse=orelse):
            yield new(body=orelse, orelse=body), "branches exchanged"
        case ast.Break():
            yield ast.Continue(), "break -> continue"
        case ast.Continue():
            yield ast.Break(), "continue -> break"
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield new(value=ast.Constant(None)), "returns None"
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Assign(targets=[ast.Attribute()]):
            yield ast.Pass(), f"removed: {ast.unparse(node).splitlines()[0][:60]}"
        case ast.Assign(targets=[ast.Subscript()]):
            yield ast.Pass(), f"removed: {ast.unparse(node).splitlines()[0][:60]}"
    if isinstance(node, ast.AugAssign):
        yield ast.Pass(), f"removed: {ast.unparse(node)[:60]}"


def name(operation: ast.AST) -> str:
    return type(operation).__name__


def mutants(path: str) -> list[Mutant]:
    """Return all changes of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = []
    for steps, node in places(tree):
        for changed, word in changes(node):
            ast.fix_missing_locations(ast.copy_location(changed, node))
            shown = steps[-1][0] if isinstance(node, ast.Constant) and isinstance(steps[-1][0], ast.expr) else node
            text = f"{word}   [{' '.join(ast.unparse(shown).split())[:70]}]"
            found.append(Mutant(path, node, text, with_change(steps, changed)))
    return found


def with_change(steps: list[Step], changed: ast.AST) -> ast.Module:
    """Return the module with another node where the steps lead; what is not on their way is shared."""
    for parent, field, number in reversed(steps):
        above = copy.copy(parent)
        if number is not None:
            children = list(getattr(parent, field))
            children[number] = changed
            changed = children
        setattr(above, field, changed)
        changed = above
    return changed


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code and all within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def functions() -> dict[str, list[FunctionType]]:
    """Return the functions of this process, by file."""
    gc.unfreeze()  # the tests freeze what is there when they begin, and what is frozen is not listed
    found = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType:  # what a weak reference stands for may be gone
            found[one.__code__.co_filename].append(one)
    gc.freeze()  # a collection would write to all memory that forks share
    return found


def apply(mutant: Mutant, living: dict[str, list[FunctionType]]) -> bool:
    """Give the functions of this process the changed code; return whether any became another."""
    file = str(ROOT / mutant.path)
    changed = {key(code): code for code in codes(compile(mutant.tree, file, "exec", dont_inherit=True))}
    before = compile((ROOT / mutant.path).read_text(encoding="utf-8"), file, "exec", dont_inherit=True)
    different = {key(code) for code in codes(before) if changed.get(key(code)) != code}
    done = False
    for one in living[file]:
        if key(one.__code__) in different:
            if one.__code__.co_freevars != changed[key(one.__code__)].co_freevars:
                return False
            one.__code__ = changed[key(one.__code__)]
            done = True
    return done


class Runner:
    """Collects the tests once; for each mutant a fork of the process runs those that reach it."""

    def __init__(self, drawn: list[Mutant], reaching, took: dict[str, float], slack: float, budget: float) -> None:
        self.drawn = drawn
        self.reaching = reaching
        self.took = took
        self.slack = slack
        self.budget = budget
        self.living: dict[str, list[FunctionType]] = {}
        self.results: list[tuple[Mutant, str, str, int]] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self.living = functions()
        for mutant in self.drawn:
            tests = self.chosen([test for test in self.reaching(mutant) if test in items])
            start = time.monotonic()
            end, word = self.fate(mutant, [items[test] for test in tests])
            self.results.append((mutant, end, word, len(tests)))
            print(f"{end:<12}{len(tests):>5} tests {time.monotonic() - start:>6.1f} s  {mutant}  {word}", flush=True)
        return True

    def chosen(self, tests: list[str]) -> list[str]:
        """Return the quickest tests that fit the budget: the quickest case of each function before any second."""
        seen: Counter[str] = Counter()
        ranked = []
        for test in sorted(tests, key=lambda test: self.took[test]):
            seen[function(test)] += 1
            ranked.append((seen[function(test)], self.took[test], test))
        chosen, spent = [], 0.0
        for _, took, test in sorted(ranked):
            spent += took
            if chosen and spent > self.budget:
                break
            chosen.append(test)
        return chosen

    def fate(self, mutant: Mutant, items: list[pytest.Item]) -> tuple[str, str]:
        """Return how a fork with the mutant ended, and the test that noticed."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            try:
                end = self.noticed(mutant, items, writer)
            except BaseException:
                traceback.print_exc()
                end = "broken"
            os.write(writer, f"\n{end}\n".encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
            said = pipe.read().split("\n")
        _, status = os.waitpid(child, 0)
        said = [line for line in said if line]
        if os.WIFSIGNALED(status):
            end = "timeout" if os.WTERMSIG(status) == signal.SIGPROF else "killed"
            return end, said[-1] if said else ""
        return said[-1], said[-2] if said[-1] == "killed" else ""

    def noticed(self, mutant: Mutant, items: list[pytest.Item], writer: int) -> str:
        """Apply the mutant, run the tests one by one and say how it ended; the pipe gets each test's name."""
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        if not apply(mutant, self.living):
            return "same"
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        if not items:
            return "unreached"
        failed = Failed()
        items[0].config.pluginmanager.register(failed)
        for item, following in zip(items, [*items[1:], None], strict=True):
            os.write(writer, f"{item.nodeid}\n".encode())
            signal.setitimer(signal.ITIMER_PROF, 5 * self.took[item.nodeid] + self.slack)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if failed:
                return "killed"
        return "survived"


class Failed:
    """True once a test has failed."""

    def __init__(self) -> None:
        self.so = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.so = self.so or report.failed

    def __bool__(self) -> bool:
        return self.so


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=40, help="mutants of each room")
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--files", help="only files whose path has one of these in it: a,b")
    parser.add_argument("--line", type=int, help="only mutants that begin on this line")
    parser.add_argument(
        "--again", type=Path, help="what this command has printed: draw what survived there, and no more"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--slack", type=float, default=10.0, help="seconds that a test may take beyond five times its own"
    )
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests for a mutant, by their usual time")
    parser.add_argument(
        "--folder", type=Path, default=KEPT, help="where coverage_without_compiler.py left its measurement"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    options = parser.parse_args()
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    import coverage

    kept = json.loads((options.folder / "tests.json").read_text())
    passed = {test for test, end in kept["ended"].items() if end == "passed"}
    measure = coverage.Coverage(data_file=str(options.folder / "coverage"), config_file=False)
    measure.load()
    data = measure.get_data()
    reached = {
        path: {line: passed.intersection(tests) for line, tests in data.contexts_by_lineno(str(ROOT / path)).items()}
        for room in ROOMS
        for path in sources(room)
    }

    def reaching(mutant: Mutant) -> set[str]:
        return set().union(*(reached[mutant.path].get(line, ()) for line in mutant.lines))

    survivors = None
    if options.again:
        said = (line.split(" tests: ") for line in options.again.read_text().splitlines())
        survivors = {word for first, *rest in said if first.startswith("survived") for word in rest}
    drawn, of_room = [], {}
    print(f"{'room':<16}{'mutants':>8}{'reached':>8}")
    for room in options.rooms.split(","):
        found = [mutant for path in sources(room) for mutant in mutants(path)]
        found = [one for one in found if any(part in one.path for part in (options.files or "").split(","))]
        found = [one for one in found if not options.line or one.lines[0] == options.line]
        found = [one for one in found if survivors is None or str(one) in survivors]
        within = [mutant for mutant in found if reaching(mutant)]
        print(f"{room:<16}{len(found):>8}{len(within):>8}")
        some = random.Random(f"{options.seed} {room}").sample(within, min(options.each, len(within)))
        of_room |= {id(mutant): room for mutant in some}
        drawn += some
    if options.list:
        print(*drawn, sep="\n")
        return
    tests = {test for mutant in drawn for test in reaching(mutant)}
    files = sorted({test.partition("::")[0] for test in tests})
    took = Counter(kept["took"])
    runner = Runner(drawn, reaching, took, options.slack, options.budget)
    for room in options.rooms.split(","):
        for path in sources(room):
            importlib.import_module(path.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
    arguments = ["-q", "-s", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore::RuntimeWarning"]
    pytest.main([*arguments, *files], plugins=[runner])
    print()
    print(f"{'room':<16}{'drawn':>7}{'killed':>8}{'timeout':>9}{'survived':>10}{'other':>7}")
    for room in options.rooms.split(","):
        ends = Counter(end for mutant, end, _, _ in runner.results if of_room[id(mutant)] == room)
        other = ends.total() - ends["killed"] - ends["timeout"] - ends["survived"]
        print(f"{room:<16}{ends.total():>7}{ends['killed']:>8}{ends['timeout']:>9}{ends['survived']:>10}{other:>7}")
    print()
    for mutant, end, _, count in runner.results:
        if end not in ("killed", "timeout", "same"):
            print(f"{end} {count} tests: {mutant}")


if __name__ == "__main__":
    main()
