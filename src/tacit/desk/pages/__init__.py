"""The desk's pages: words and pictures of what the holder's side says, nothing computed here."""
