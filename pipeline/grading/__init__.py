"""Is this answer right? Reading order: limits, extract, normal, exact, compare, then child and pool.

Everything here treats model output as hostile: text is never evaluated, the fast path is linear in the text and pure,
and all symbolic work happens in child processes that can be killed.
"""
