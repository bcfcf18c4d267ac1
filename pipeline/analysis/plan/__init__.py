"""The `plan` command: estimates what a run would do and cost, from a small pilot."""
