# Written by `python tests/stubs.py`, of the table in __init__.py.
from ptaskmodel.mpi.run import Replay as Replay
from ptaskmodel.mpi.run import ReplayResult as ReplayResult
from ptaskmodel.mpi.run import hosts_in_file as hosts_in_file
from ptaskmodel.mpi.run import hosts_named as hosts_named
from ptaskmodel.mpi.run import hosts_of_ranks as hosts_of_ranks
from ptaskmodel.mpi.run import replay as replay
from ptaskmodel.workload.formats.ti_trace import read_trace as read_trace
from ptaskmodel.workload.formats.ti_trace import write_trace as write_trace
from ptaskmodel.workload.traces import Trace as Trace
from ptaskmodel.workload.traces import trace_of_actions as trace_of_actions
from ptaskmodel.workload.traces import write_text_trace as write_text_trace
