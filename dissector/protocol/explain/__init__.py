"""What the tables know of a message, told to people: its layout, its bytes as a picture, its history, an example."""
