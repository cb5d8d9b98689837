"""Output for people: tables and progress in the terminal, figures, a live page."""
