"""Fair learning to rank: train rankers that treat groups evenly, and see what that costs."""
