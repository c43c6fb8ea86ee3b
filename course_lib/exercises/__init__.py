"""One module a notebook: its exercises, each with the library's piece, checks that explain, and hints."""
