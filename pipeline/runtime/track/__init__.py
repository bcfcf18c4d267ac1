"""Where the course of a run is drawn: TensorBoard, MLflow, Weights & Biases. Each package is loaded when it is asked for."""
