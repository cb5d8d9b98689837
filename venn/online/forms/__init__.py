"""How objects of each class are taken apart for a checkpoint and made again: the classes that one may hold."""

from venn.online.forms import machines, objects
from venn.online.forms.base import form_named, form_of

# Importing these has filled the table.
TABLE = (machines, objects)

__all__ = ["TABLE", "form_named", "form_of"]
