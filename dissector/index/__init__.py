"""Both directions of a connection together: who is the client, what answers what, what is missing."""
