"""Many inputs of unequal cost through one function: four problems, each as a plain Python function of one example."""
