"""Comparison: sub-models of one set of releases, weighed and averaged."""
