"""The `report` command for one run: an HTML page, and a summary in the terminal."""
