"""Does the program pass its tests? Reading order: program, suite, output, then syscalls, sandbox, wire, runs, child, slot and
checker. Programs run, confined, in processes of their own that never hold what is expected of them.
"""
