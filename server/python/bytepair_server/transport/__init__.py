"""How calls reach the server. Only this folder knows gRPC, HTTP/2 and sockets."""
