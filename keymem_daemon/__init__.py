"""The daemon: the one process that owns the graph, the indexes, the models, the store and the scheduler."""
