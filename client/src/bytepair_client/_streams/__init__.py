"""Streams: how a source is sent, answered, and sent again if the connection breaks.

`buffer`, with `text` and `ids`, makes requests of what a source gives. `state` knows what was sent
and answered, and decides what happens next; `stream` and `async_stream` add input and output.
"""
