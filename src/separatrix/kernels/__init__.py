"""The compiled part: arithmetic on arrays, compiled by Numba. Each file opens with the formula it computes.

`learning` makes passes over rows, replays mistakes and descends in the dual; `parsing` turns bytes of files into numbers;
`text` turns characters into counts of tokens; `modular` computes with integers modulo primes. Arrays come in, and what
comes out is written into arrays of the caller: no kernel allocates, reads a file or knows a Python object.

`codes` holds the integers by which kernels tell settings apart, and `compiling` says how all of them are compiled. Kernels
import nothing of the package outside this folder, so the folder's contents are the key of the cache of compiled code.
"""
