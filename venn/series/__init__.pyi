from .forecaster import SeriesForecaster as SeriesForecaster
from .levels import Account as Account
from .path import Path as Path
from .path import Step as Step
