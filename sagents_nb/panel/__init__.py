"""What a page sees of a session, and may ask of it: one protocol, whatever carries it."""
