"""Client programs that the lab records: `python CLIENT.py SERVERS SCENARIO`, each with its own client library."""
