"""The seasons of a series, found by the autocorrelation of its differences."""

from __future__ import annotations

import numpy as np

from venn.prediction import Floats

STRONG = 0.25  # least autocorrelation of a season
CYCLES = 3  # cycles of a season that must have been seen
BETTER = 0.06  # by how much a longer one must be stronger


def seasons_of(values: Floats) -> tuple[int, ...]:
    """Return one or two periods of a series without gaps, the shorter one first; (1,) for none.

    Examples
    --------
    >>> t = np.arange(100)
    >>> seasons_of(np.sin(2 * np.pi * t / 7) + 0.1 * (t % 3)), seasons_of(np.cumsum(np.ones(50)))
    ((7,), (1,))
    """
    away = np.diff(values)
    n = len(away)
    spread = float(away.std())
    if n < 8 or not spread > 1e-12 * float(np.abs(values).max()):
        return (1,)
    away = np.clip((away - away.mean()) / spread, -4, 4)
    away -= away.mean()
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(away, size)) ** 2
    lags = np.fft.irfft(power, size)[: n // CYCLES + 2]
    lags = lags / lags[0] * n / (n - np.arange(len(lags)))
    inner = np.arange(2, len(lags) - 1)
    peaks = inner[(lags[inner] >= lags[inner - 1]) & (lags[inner] >= lags[inner + 1])]
    peaks = peaks[lags[peaks] > max(STRONG, 2.5 / np.sqrt(n))]
    if not len(peaks):
        return (1,)
    first = int(peaks[lags[peaks] >= 0.85 * lags[peaks].max()][0])
    short = [int(p) for p in peaks if p < first and first % p == 0 and lags[p] >= lags[first] - 4 * BETTER]
    if short:  # keep a short season only if it repeats as well as the long one
        return (short[0], first) if lags[first] - lags[short[0]] > BETTER else (short[0],)
    return (first,)
