"""The paper's tables and figures from one command.

Alparslan, Yıldırım and Birbil, ICML 2023, as published and honestly calibrated. README.md says how
data flow through the folders.
"""
