"""What the machine shows about itself: its hardware, its sensors and the messages of its kernel."""
