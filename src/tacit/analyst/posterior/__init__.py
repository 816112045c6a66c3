"""What a method found: the posterior, and everything that is read off it."""
