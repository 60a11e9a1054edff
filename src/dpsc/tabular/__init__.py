"""Tables on disk, and what people get wrong in them.

Errors name the file, the column or the row and the next step in the words of the command line. They never quote a
donor's value; names of columns and periods are public.
"""

from dpsc.data.columns import column, numbers, position, unit_position
from dpsc.data.tables import KINDS, MISSING, read, require_header
from dpsc.tabular.layout import Layout
from dpsc.tabular.panels import donors, panel_frame, series
from dpsc.tabular.periods import moment, periods, require_periods
from dpsc.tabular.wording import in_options, is_text, naming

__all__ = [
    "KINDS",
    "MISSING",
    "Layout",
    "column",
    "donors",
    "in_options",
    "is_text",
    "moment",
    "naming",
    "numbers",
    "panel_frame",
    "periods",
    "position",
    "read",
    "require_header",
    "require_periods",
    "series",
    "unit_position",
]
