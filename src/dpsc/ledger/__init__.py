"""The privacy ledger: a budget for all releases of a data set together, that nobody can overspend."""

from dpsc.ledger.book import Ledger
from dpsc.ledger.records import DataSet, Entry

__all__ = ["DataSet", "Entry", "Ledger"]
