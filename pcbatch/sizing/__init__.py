"""How much room containers need, seen in examples of a call that Python runs before the program is compiled."""
