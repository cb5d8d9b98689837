"""Compiler flags, once for all loops."""

import numba

# "contract" lets multiply and add fuse; nothing else is relaxed, so sums keep their order and a
# result depends on the numbers alone. error_model="numpy" drops the division check from inner loops.
compiled = numba.njit(cache=True, error_model="numpy", fastmath={"contract"})

# For long sums that limit the speed: the compiler may add in lanes of the width that the processor has.
# The last bits then differ between processors, not between calls.
in_lanes = numba.njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
