"""Templates: how a chain is put to a judge, and how its answer is read. One set serves judges and `scorer=generative`."""
