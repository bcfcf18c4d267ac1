"""What a run would do and cost, from a small pilot."""
