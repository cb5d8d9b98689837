"""What the studies share: results kept between runs, and documents whose tables are written by a program."""
