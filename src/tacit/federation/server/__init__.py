"""The analyst's half: ask every site, check what comes back, fit."""
