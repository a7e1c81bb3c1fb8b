"""The paper's experiments, its printed numbers and the tables that put both side by side."""
