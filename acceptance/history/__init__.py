"""What is remembered of a machine from night to night: its runs as rows of a database, and what it was when it was accepted."""
