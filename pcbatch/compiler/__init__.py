"""The compiler of one function for one signature: the passes in order, and the program that they give."""
