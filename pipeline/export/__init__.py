"""Labels in the formats of trainers."""
