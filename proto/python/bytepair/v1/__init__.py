"""Messages and stubs of the API `bytepair.v1`, generated from `proto/` by `make proto`."""
