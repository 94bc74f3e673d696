"""Both directions of a connection together: who is the client, which response answers which request, what is missing."""
