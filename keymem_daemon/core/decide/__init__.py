"""The write rules: each takes a plan over a draft of the graph, decides, and leaves the changes in the plan."""
