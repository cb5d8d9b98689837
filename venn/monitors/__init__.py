"""Whether what predictors claim holds: test martingales, bounds, calibration, alarms."""
