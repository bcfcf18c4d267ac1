"""The checker of mathematical answers."""
