"""What a run of `search` found: trees, figures and the page."""
