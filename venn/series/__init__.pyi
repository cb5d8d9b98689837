from .forecaster import SeriesForecaster as SeriesForecaster
from .levels import HorizonAccount as HorizonAccount
from .next_value import NextValue as NextValue
from .path import Path as Path
from .path import Step as Step
