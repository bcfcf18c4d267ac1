"""The page of a problem's rollout tree, which `report tree=PROBLEM` writes."""
