"""Federation: holders and analyst as a Flower app.

`client/` runs where rows lie and imports the holder's side alone; `server/` runs where the analyst
is and imports the analyst's side alone; `wire.py` is what travels between them.
tests/test_architecture.py enforces it.
"""
