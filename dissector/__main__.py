"""`python -m dissector` is `kdissect`."""

from dissector.cli.main import main

if __name__ == "__main__":
    main()
