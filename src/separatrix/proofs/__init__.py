"""Separable, touching or inseparable, with a proof that anybody can check.

In come rows and class codes; out goes a `Certificate`. `prover` finds a proof; `checker` checks it from the data alone and
shares no code with the prover.
"""
