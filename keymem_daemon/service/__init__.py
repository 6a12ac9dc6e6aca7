"""The verbs: one module a use case, async, free of any framework."""
