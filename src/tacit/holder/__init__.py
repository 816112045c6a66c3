"""Where rows live. Nothing here imports the analyst's side, and only a release leaves it."""
