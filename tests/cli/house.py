"""A small table that a house may publish."""

ROWS = "age,bmi,sex,admission,days\n50,25.5,female,planned,3\n61,31,male,emergency,12\n70,,female,planned,4\n130,22,male,planned,2\n"
