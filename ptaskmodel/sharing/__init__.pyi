# Written by `python tests/stubs.py`, of the table in __init__.py.
from ptaskmodel.sharing.bmf import bmf as bmf
from ptaskmodel.sharing.certificate import verify as verify
from ptaskmodel.sharing.fairbottleneck import fairbottleneck as fairbottleneck
from ptaskmodel.sharing.fairbottleneck import fairbottleneck_corrected as fairbottleneck_corrected
from ptaskmodel.sharing.maxmin import maxmin as maxmin
from ptaskmodel.sharing.problem import BOUND_LIMIT as BOUND_LIMIT
from ptaskmodel.sharing.problem import FREE_LIMIT as FREE_LIMIT
from ptaskmodel.sharing.problem import Allocation as Allocation
from ptaskmodel.sharing.problem import Certificate as Certificate
from ptaskmodel.sharing.problem import SharingProblem as SharingProblem
