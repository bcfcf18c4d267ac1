"""`check`: programs that look at the steps of runs and of rows."""
