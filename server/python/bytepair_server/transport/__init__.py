"""How calls reach the server. Only this room knows gRPC, HTTP/2 and sockets."""
