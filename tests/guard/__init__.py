"""The guard: what users have today, by the doors that users have. Nothing here knows how the code is laid out."""
