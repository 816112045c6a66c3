"""What is compared: the data, the paper's release, its priors, and what it prints."""
