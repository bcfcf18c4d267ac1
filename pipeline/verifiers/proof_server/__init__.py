"""Has a Lean server check the steps of a proof, and says which of them it accepts."""
