"""How loops are compiled: a loop called by compiled code only becomes part of its callers.

Numba optimises every function that another one calls, writes machine code and a Python wrapper for it, links a copy
into the caller, and optimises that again. So inner loops are optimised once for each level of calls above them, and
much of a first call's time goes into code that never runs. Here a function that is called by compiled code is a `Part`:
only LLVM's input, simplified function by function. Only the outermost function, with all that it calls, is optimised
and becomes machine code, and only that is kept in the cache. LLVM works from the innermost calls outwards, so the
resulting loops are about the same.

Also, a function does not count references to arrays that it only reads and writes: its caller holds them. And what
numba has resolved about an operator is remembered.

This reaches into numba's own classes, which may change with any version: `jit.py` uses it only with those that were
tried, numba 0.60 to 0.68. Any other one compiles each loop by itself, and then the last bits of some sums differ, since
LLVM widens other loops. It stays because of the first replay: with empty caches `venn replay car` takes 31 s of
processor time, 48 s without all this (numba 0.68; 14 s with filled caches), and the loops of the hinge loss 12 s and
32 s. Without what is remembered of operators it takes 6 s more. The counting of references hardly matters for that, but
the last bits of some sums depend on it.
"""

from __future__ import annotations

import gc
from typing import Any

from numba.core import ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import AnnotateTypes
from numba.core.types.functions import BaseFunction


class _NoEngine:
    """A code generator for a library without machine code."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: there is no address to write to."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class PartLibrary(JITCodeLibrary):
    """LLVM code of a function and of those it calls, to be linked into callers."""

    @property
    def codegen(self) -> Any:
        return _NoEngine(self._codegen)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


@register_pass(mutates_CFG=False, analysis_only=True)
class BorrowArrays(LoweringPass):
    """Leave out reference counts where no array is made or returned: callers hold all other arrays."""

    _name = "venn_borrow_arrays"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Inspect the types of returned values and of calls."""
        context = state.targetctx
        if context.enable_nrt and not _managed(context, state.return_type):
            for block in state.func_ir.blocks.values():
                if any(_makes(context, statement, state.typemap) for statement in block.body):
                    return False
            state.targetctx = context.subtarget(enable_nrt=False)
        return False


def _managed(context: Any, of: Any) -> bool:
    """Whether a value of this type holds references."""
    return bool(context.data_model_manager[of].contains_nrt_meminfo())


def _viewing(index: Any) -> bool:
    """Whether a subscript of this type makes a view; a subscript by an array does not."""
    members = getattr(index, "types", (index,))
    return all(isinstance(member, (types.Integer, types.SliceType)) for member in members)


def _makes(context: Any, statement: Any, typemap: Any) -> bool:
    """Whether a statement may make an array: its result, or a copy on the way."""
    if isinstance(statement, ir.SetItem):
        view = _viewing(typemap[statement.index.name])
        return not view or _managed(context, typemap[statement.value.name])
    if isinstance(statement, ir.StaticSetItem):
        return _managed(context, typemap[statement.value.name])
    if not isinstance(statement, ir.Assign):
        return False
    value = statement.value
    if not isinstance(value, ir.Expr) or not _managed(context, typemap[statement.target.name]):
        return False
    if value.op in ("getattr", "static_getitem", "exhaust_iter", "build_tuple", "cast"):
        return False
    if value.op == "getitem":
        return not _viewing(typemap[value.index.name])
    if value.op == "call":
        return not isinstance(typemap[value.func.name], types.NamedTupleClass)
    return True


@register_pass(mutates_CFG=False, analysis_only=False)
class AsPart(LoweringPass):
    """Give the function a library without machine code."""

    _name = "venn_as_part"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Set the library before numba makes one."""
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return True


class _Remembering:
    """Inside this context numba remembers the signatures of operators and built-in functions by types.

    Otherwise it tries a dozen candidates for each `a[i]` or `a + b` in a loop, again while types settle, and again
    when the loop is lowered. Compiling holds numba's lock, so no other thread runs this.
    """

    def __init__(self) -> None:
        self._numba: Any = BaseFunction
        self._known: dict[Any, Any] = {}
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        self._thresholds = gc.get_threshold()
        gc.set_threshold(50_000, 20, 20)
        self._ask = ask = self._numba.get_call_type
        known = self._known

        def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
            key = function, context, tuple(args), tuple(sorted(dict(kws).items()))
            found = known.get(key)
            if found is None:
                found = ask(function, context, args, kws)
                if all(arg.is_precise() for arg in args):
                    known[key] = found
            return found

        self._numba.get_call_type = get_call_type

    def __exit__(self, *raised: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._numba.get_call_type = self._ask
            gc.set_threshold(*self._thresholds)


_remembering = _Remembering()


class Whole(CompilerBase):
    """Compile a function that Python calls."""

    last: tuple[Any, ...] = (BorrowArrays,)

    def define_pipelines(self) -> list[Any]:
        """Return numba's passes with our own."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        after = AnnotateTypes
        for own in self.last:
            passes.add_pass_after(own, after)
            after = own
        passes.finalize()
        return [passes]

    def _compile_core(self) -> Any:
        with _remembering:
            return super()._compile_core()


class Part(Whole):
    """Compile a function that a compiled one calls."""

    last = (BorrowArrays, AsPart)
