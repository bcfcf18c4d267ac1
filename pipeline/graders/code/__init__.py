"""The checker of programs. It runs a program against its tests in a sandbox.

The process of a program never contains the expected results. Reading order: program, composition, suite, output; syscalls,
sandbox, wire, runs, child, child_process, checker.
"""
