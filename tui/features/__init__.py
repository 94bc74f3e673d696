"""The features of the main screen and of the diff screen, one file each."""
