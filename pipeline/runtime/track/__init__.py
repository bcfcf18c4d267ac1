"""Experiment trackers: TensorBoard, MLflow, Weights & Biases. The package of a tracker is imported only if it is used."""
