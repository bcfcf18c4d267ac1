"""The guard: what users have today, through the commands that users have. Nothing here knows how the code is laid out."""
