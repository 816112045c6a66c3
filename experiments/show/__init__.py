"""What is shown: means, tables, figures and the page."""
