"""Sends the progress of a run to TensorBoard, MLflow or Weights & Biases.

The package of a tracker is imported only if it is used.
"""
