"""`bench`: methods side by side on several data sets, strengths chosen on other queries than reported."""
