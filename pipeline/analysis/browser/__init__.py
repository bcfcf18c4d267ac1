"""One browser of chains and trees on a page. A chain is a path; a search is a tree, and so are the rollouts of a problem."""
