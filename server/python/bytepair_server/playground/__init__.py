"""The playground: a page that shows tokens, at the root of the gRPC port."""
