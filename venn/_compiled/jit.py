"""Compiler flags, once for all loops."""

import numba

# "contract" lets multiply and add fuse; nothing else is relaxed, so sums keep their order and a
# result depends on the numbers alone. error_model="numpy" drops the division check from inner loops.
compiled = numba.njit(cache=True, error_model="numpy", fastmath={"contract"})
