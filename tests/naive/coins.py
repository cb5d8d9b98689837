"""The random number that breaks the ties of an object at a step, with whole numbers of any size."""

import struct

import numpy as np


def mixed(z):
    """Return the 64 bits that the last stage of SplitMix64 makes of 64 bits."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def digest(x):
    """Return the sum over all numbers that are not 0, each mixed with its place, counted from 1."""
    bits = [struct.unpack(">Q", struct.pack(">d", value))[0] for value in x]
    places = [f for f, value in enumerate(x) if value != 0]
    return sum(mixed((bits[f] + (f + 1) * 0x9E3779B97F4A7C15) % 2**64) for f in places) % 2**64


def coin(seed, n, x):
    """Return the number in [0, 1) that belongs to the object when n examples have been learned."""
    drawn = int(np.random.PCG64([seed, 0x76656E6E]).advance(n).random_raw())
    return (mixed(drawn ^ digest(x)) >> 11) / 2**53


def coins(seed, start, X):
    """Return those of the objects of the steps from `start` on, one each."""
    return np.array([coin(seed, start + i, x) for i, x in enumerate(X)])
