"""Words for numbers and names."""
