"""Text and ids that come in pieces: encoding, counting and decoding as they arrive."""
