"""Families: yes/no answers and counts from the statistics of a linear regression."""
