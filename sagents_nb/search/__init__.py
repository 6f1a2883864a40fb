"""Finding things by what is said of them: tools, agents, passages of documents."""
