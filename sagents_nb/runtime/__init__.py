"""The thread that all runs live on, the main thread, and what leads from one to the other."""
