"""A small table that a house may publish."""

ROWS = """\
age,bmi,sex,admission,days
50,25.5,female,planned,3
61,31,male,emergency,12
70,,female,planned,4
130,22,male,planned,2
"""
