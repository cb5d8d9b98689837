"""The loop: many predictors side by side, a replay, and the record it leaves."""
