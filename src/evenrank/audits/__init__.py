"""An audit of given rankings: the numbers, the sentences and how they are laid out."""
