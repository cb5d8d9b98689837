"""How objects of each class are taken apart for a checkpoint and made again: the classes that one may hold."""

from venn.online.forms import inductive, machines, objects, predictors, values
from venn.online.forms.base import Model, form_named, form_of

# Importing these has filled the table.
TABLE = (inductive, machines, objects, predictors, values)

__all__ = ["TABLE", "Model", "form_named", "form_of"]
