"""The providers: a model and its reader in one file each, and what they share."""
