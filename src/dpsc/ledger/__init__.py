"""The privacy ledger: one budget for all releases of a data set together, which cannot be overspent."""

from dpsc.ledger.book import Ledger
from dpsc.ledger.records import DataSet, Entry

__all__ = ["DataSet", "Entry", "Ledger"]
