# Written by `python tests/stubs.py`, of the table in __init__.py.
from ptaskmodel.replay.algorithms import algorithms_named as algorithms_named
from ptaskmodel.replay.driver import Replay as Replay
from ptaskmodel.replay.driver import ReplayResult as ReplayResult
from ptaskmodel.replay.driver import hosts_in_file as hosts_in_file
from ptaskmodel.replay.driver import hosts_named as hosts_named
from ptaskmodel.replay.driver import hosts_of_ranks as hosts_of_ranks
from ptaskmodel.replay.driver import replay as replay
from ptaskmodel.workload.formats.ti_trace import read_trace as read_trace
from ptaskmodel.workload.formats.ti_trace import write_trace as write_trace
from ptaskmodel.workload.ti_traces import Trace as Trace
from ptaskmodel.workload.ti_traces import trace_of_actions as trace_of_actions
from ptaskmodel.workload.ti_traces import write_text_trace as write_text_trace
