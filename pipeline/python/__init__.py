"""What Python users call: `label`, `open_run` and `Run`. `pipeline.label` and `stepvalue.label` are these functions.

Reading order: overrides, rows, process, child, views; directory, run; label.
"""
