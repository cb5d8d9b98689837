"""Where do the seconds of compiling go, by function and phase?

    python benchmarks/compiling.py --machine OneVsAllSVM [--n 60] [--top 25]

A process with an empty cache makes the README's first model, with the given machine, and replays n examples of Car.
Processor seconds are exclusive: a phase of a function does not include the compiling of another function meanwhile.
Phases: `typing` all passes before lowering, `lower` from numba's to LLVM's representation, `wrappers` for callers in
Python and C, `link` copies of what is called, `functions`, `cheap` and `full` LLVM's passes, `emit` machine code,
`save` to the cache. A function of several signatures has a line for each.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict

PREDICTORS = {
    "LeastSquaresSVM": "venn.TransductiveVenn(venn.{0}(venn.RBF(0.5), C=10, classes=classes), "
    "venn.LeaveOneOut(venn.taxonomies.AdaptiveMarginBins()))",
    "OneVsAllSVM": "venn.TransductiveVenn(venn.{0}(venn.RBF(0.5), C=10, classes=classes), venn.Argmax())",
}


def replay(name, n):
    """Replay the first examples of Car."""
    import streams
    import venn

    stream = streams.load("car", shuffle=0).take(n)
    model = eval(PREDICTORS[name].format(name), {"venn": venn, "classes": stream.classes})
    for x, y in stream:
        model.predict_one(x)
        model.learn_one(x, y)


class Clock:
    """Exclusive processor seconds of nested (function, phase) pairs."""

    def __init__(self):
        self.seconds = defaultdict(float)
        self.stack = []
        self.last = time.process_time()

    def _tick(self):
        now = time.process_time()
        self.seconds[self.stack[-1] if self.stack else ("", "rest")] += now - self.last
        self.last = now

    def start(self, key):
        self._tick()
        self.stack.append(key)

    def end(self):
        self._tick()
        self.stack.pop()

    def timed(self, phase, of=None):
        """Wrap a method so that its seconds count for `phase`."""

        def decorate(method):
            @functools.wraps(method)
            def wrapper(*args, **kwargs):
                name = of(*args) if of else (self.stack[-1][0] if self.stack else "")
                self.start((name, phase))
                try:
                    return method(*args, **kwargs)
                finally:
                    self.end()

            return wrapper

        return decorate


def instrument(clock):
    """Make numba's compiler report its phases to the clock."""
    from numba.core import caching, codegen, compiler_machinery, cpu, lowering

    number = defaultdict(dict)

    def called(state):
        name = state.func_id.func_qualname
        signatures = number[state.func_id.modname + "." + name]
        key = str(state.args)
        signatures.setdefault(key, len(signatures))
        return f"{state.func_id.modname}.{name}#{signatures[key]}"

    old = compiler_machinery.PassManager._runPass

    def run_pass(self, index, pss, state):
        phase = "lower" if "lowering" in pss.name() else "typing"
        clock.start((called(state), phase))
        try:
            return old(self, index, pss, state)
        finally:
            clock.end()

    compiler_machinery.PassManager._runPass = run_pass
    for cls, name, phase in (
        (lowering.Lower, "create_cpython_wrapper", "wrappers"),
        (lowering.Lower, "create_cfunc_wrapper", "wrappers"),
        (codegen.CPUCodeLibrary, "_optimize_functions", "functions"),
        (codegen.CPUCodeLibrary, "finalize", "link"),
        (codegen.CPUCodeLibrary, "_finalize_final_module", "emit"),
        (codegen.CPUCodeLibrary, "serialize_using_object_code", "save"),
        (caching.IndexDataCacheFile, "save", "save"),
        (cpu.CPUContext, "post_lowering", "lower"),
    ):
        setattr(cls, name, clock.timed(phase)(getattr(cls, name)))

    def optimize(self):
        cheap, cheap_builder = self._codegen._module_pass_manager(
            loop_vectorize=self._codegen._loopvect, slp_vectorize=False, opt=self._codegen._opt_level, cost="cheap"
        )
        full, full_builder = self._codegen._module_pass_manager()
        clock.timed("cheap")(cheap.run)(self._final_module, cheap_builder)
        clock.timed("full")(full.run)(self._final_module, full_builder)

    codegen.CPUCodeLibrary._optimize_final_module = optimize


PHASES = ("typing", "lower", "wrappers", "functions", "link", "cheap", "full", "emit", "save")


def report(clock, top):
    """Print the table."""
    by_function, by_phase = defaultdict(lambda: defaultdict(float)), defaultdict(float)
    for (name, phase), seconds in clock.seconds.items():
        by_function[name or "(nothing compiled)"][phase] += seconds
        by_phase[phase] += seconds
    total = sum(by_phase.values())
    print(f"{'function':58s}{'all':>7s}" + "".join(f"{phase:>10s}" for phase in PHASES))
    rows = sorted(by_function.items(), key=lambda item: -sum(item[1].values()))
    for name, phases in rows[:top]:
        print(f"{name[-57:]:58s}{sum(phases.values()):7.2f}" + "".join(f"{phases[phase]:10.2f}" for phase in PHASES))
    print(f"{'all ' + str(len(rows) - 1):58s}{total:7.2f}" + "".join(f"{by_phase[phase]:10.2f}" for phase in PHASES))
    ours = sum(1 for name in by_function if name.startswith("venn"))
    mine = sum(sum(p.values()) for name, p in by_function.items() if name.startswith("venn"))
    print(f"venn functions: {ours}, {mine:.2f} s; others: {len(rows) - 1 - ours}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default="OneVsAllSVM", choices=sorted(PREDICTORS))
    parser.add_argument("--n", type=int, default=60)
    parser.add_argument("--top", type=int, default=25)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help="only the processor and wall seconds of the process")
    args = parser.parse_args()
    if args.child:
        clock = Clock()
        if not args.plain:
            instrument(clock)
        replay(args.machine, args.n)
        if not args.plain:
            clock._tick()
            report(clock, args.top)
        return
    with tempfile.TemporaryDirectory() as folder:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        program = [sys.executable, __file__, "--child", *sys.argv[1:]]
        subprocess.run(program, check=True, env={**os.environ, "NUMBA_CACHE_DIR": folder})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        print(f"{args.machine}: processor {user + system:.2f} s (user {user:.2f}), ", end="")
        print(f"wall {time.perf_counter() - start:.2f} s, first {args.n} examples, cold")


if __name__ == "__main__":
    main()
