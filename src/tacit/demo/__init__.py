"""Stories that `tacit demo` tells: who holds what, and on what terms."""
