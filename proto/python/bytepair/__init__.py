"""The namespace of the generated protocol code; see `bytepair_client` for the client."""
