"""What samples completions: policies and their engines, and what a device could do at best."""
