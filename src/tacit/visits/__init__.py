"""Visits: from releases to the next question, and from all answers to one set of statistics.

Functions of public documents alone, which holders and analyst share: whoever has the releases finds
the same question.
"""
