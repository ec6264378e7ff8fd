"""The operations of the service: one function each, from arguments to a call.

An operation defines the arguments of a method, the request, and the plain value of the response,
for both clients and for raw responses. The client supplies the first argument, `defaults`.
"""
