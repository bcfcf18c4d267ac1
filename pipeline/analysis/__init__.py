"""What reads a run: plan, status, report, comparison, agreement, selection, audit, and new labels from stored rollouts."""
