"""`python -m benchwright` is the command."""

from benchwright.cli.main import main

if __name__ == "__main__":
    main()
