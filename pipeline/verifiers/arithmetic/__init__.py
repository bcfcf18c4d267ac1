"""Finds equations of plain numbers in a step and judges them with exact fractions."""
