"""The operations of the service, one function each: from arguments to a call ready to be sent.

Everything is decided here once, for both clients, for plain values and for whole messages: the
names and defaults of arguments, how they go into a request, and the plain value of an answer. The
first argument, `defaults`, is the client's; users do not pass it.
"""
