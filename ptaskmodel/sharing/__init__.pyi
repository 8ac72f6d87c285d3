# Written by `python tests/stubs.py`, of the table in __init__.py.
from ptaskmodel.sharing.arrays import LIMIT_BOUND as LIMIT_BOUND
from ptaskmodel.sharing.arrays import LIMIT_NOTHING as LIMIT_NOTHING
from ptaskmodel.sharing.arrays import bmf as bmf
from ptaskmodel.sharing.arrays import fairbottleneck as fairbottleneck
from ptaskmodel.sharing.arrays import fairbottleneck_corrected as fairbottleneck_corrected
from ptaskmodel.sharing.arrays import flow_maxmin as flow_maxmin
from ptaskmodel.sharing.arrays import maxmin as maxmin
from ptaskmodel.sharing.arrays import proportional as proportional
from ptaskmodel.sharing.arrays import solve as solve
from ptaskmodel.sharing.problem import Allocation as Allocation
from ptaskmodel.sharing.problem import Certificate as Certificate
from ptaskmodel.sharing.problem import SharingProblem as SharingProblem
from ptaskmodel.sharing.problem import verify as verify
from ptaskmodel.sharing.rules import RULES as RULES
