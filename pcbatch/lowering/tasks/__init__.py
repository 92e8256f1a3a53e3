"""The way from the CFG to the task IR: which calls may run side by side, and the program of tasks that does so."""
