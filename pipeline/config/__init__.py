"""The settings: their schemas, what a setting says of itself, and which settings of a finished run may change."""
