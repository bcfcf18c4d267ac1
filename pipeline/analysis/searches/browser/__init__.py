"""The part of the page of a run of `search` that shows its problems and their trees."""
