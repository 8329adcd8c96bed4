"""`python -m hookline` is `hookline`."""

from hookline.cli import main

main(prog_name="hookline")
