"""Pages that a program writes for people: safe markup, drawings, and numbers in words."""
