"""Two runs side by side: `report` with two run directories."""
