"""The secure sum: masks, what is signed, the holder's and the server's rounds."""
