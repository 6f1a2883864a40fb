"""Where the files of a mount are kept: each storage in a file of its own."""
