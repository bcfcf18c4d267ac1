"""The pipeline beside what one would write without it: the same chains, model, engine settings and rollouts."""
