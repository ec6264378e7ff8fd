"""Streams: sending a source, reading responses, and resuming over another connection.

`buffers` makes requests from the items of a source. `state` tracks requests and responses, and
decides when a stream resumes. `stream` and `async_stream` add the I/O.
"""
