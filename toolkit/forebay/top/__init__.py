"""`forebay top`: a running job, from what its processes spill while they run."""
