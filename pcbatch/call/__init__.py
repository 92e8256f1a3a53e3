"""One call: arguments in, results out, and the devices that it runs on."""
