"""What is computed: chains, closed forms, distances and times, part by part."""
