"""The `status` command: how a run goes, from its committed files and from what its starts tell."""
