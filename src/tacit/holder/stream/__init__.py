"""Streams: batches that are published and forgotten, under one charge."""
