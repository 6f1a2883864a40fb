"""Other people's protocols, each a map between its words and ours."""
