"""Steps with one plain error each, of known kinds, and the same steps without it.

`development` has the templates that verifiers were written with, `held_out` others that were only used to measure them.
"""
