"""Whether data are separable, touching or inseparable, with a proof that anybody can check.

Rows and class codes come in; a `Certificate` goes out. `prover` and the modules that it imports find a proof, `checker`
checks it from the data alone, and neither imports the other: only `certificate` calls both.
"""
