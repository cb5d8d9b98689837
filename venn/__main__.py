"""Run the command line: ``python -m venn``."""

from venn.cli import main

if __name__ == "__main__":
    main(prog_name="venn")
