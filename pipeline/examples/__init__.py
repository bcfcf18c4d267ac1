"""Examples that run: a notebook, and a script with one implementation of your own for each extension point.

Reading order: the notebook; estimator, policy, grader, export_format.
"""
