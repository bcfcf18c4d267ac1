"""Is this answer right? One checker for mathematics, one for code; `base` says what both promise, `choose` picks one.

Mathematics, in reading order: limits, extract, normal, exact, compare, then child and pool. Text is never evaluated, the
fast path is linear in the text and pure, and all symbolic work happens in child processes that can be killed.
Code, in reading order: program, suite, assertions, output, then syscalls, sandbox, wire, code_task, code_runs, code_watch,
code_child, code_slot and code. Programs run, confined, in processes of their own that never hold what is expected of them.
"""
