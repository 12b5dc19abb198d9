"""Types of arrays and of arguments."""
