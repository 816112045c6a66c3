"""Rows as they come and as the study sees them: what publishing and predicting read alike."""
