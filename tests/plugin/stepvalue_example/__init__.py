"""Plug-ins for stepvalue: `estimator=thompson`, `policy=coin`, `grader=caseless` and `format=lines`."""
