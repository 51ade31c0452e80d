"""What `rvma sweep`, `rvma report` and `rvma regress` run: they start runs of the program (its path is in the
environment variable RVMA) and gather what those wrote."""
