"""One run: the loop, the model call, the tool calls, and where it waits for people."""
