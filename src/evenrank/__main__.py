"""`python -m evenrank` is the command line."""

from evenrank.cli import main

if __name__ == "__main__":
    main()
