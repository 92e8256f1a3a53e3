"""The room that containers need, as examples of a call show it, which Python runs before the program is compiled."""
