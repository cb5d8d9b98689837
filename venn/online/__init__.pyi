"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .account import Account as Account
from .checkpoint import load as load
from .checkpoint import save as save
from .forecaster import Forecaster as Forecaster
from .journal import Journal as Journal
from .journal import JournalError as JournalError
from .loop import Online as Online
from .lot import Asked as Asked
from .lot import Lot as Lot
from .number_outlook import NumberOutlook as NumberOutlook
from .number_outlook import NumberOutlooks as NumberOutlooks
from .outlook import Outlook as Outlook
from .outlook import Outlooks as Outlooks
from .panel import Panel as Panel
from .record import Record as Record
from .repair import salvage as salvage
from .repair import verify as verify
from .replaying import replay as replay
from .selective import Selective as Selective
from .selective import SelectiveAnswer as SelectiveAnswer
from .selective import SelectiveAnswers as SelectiveAnswers
from .watch import Watch as Watch
