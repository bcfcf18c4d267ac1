"""Checks of machines, models and folders before a run starts; nothing here changes anything."""
