"""The engines' own arithmetic: their comparison, the width of their numbers, their rule for missing values."""
