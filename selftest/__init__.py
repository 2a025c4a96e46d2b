"""The proof of the tester: a catalogue of faulty machines driven through the real harness, and what it says of each."""
