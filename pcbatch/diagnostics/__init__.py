"""Messages for users: spans, rendering, formats of numbers, and the pages about error codes."""
