# Written by `python tests/stubs.py`, of the table in __init__.py.
from ptaskmodel.workload.formats.tasks_json import load_tasks as load_tasks
from ptaskmodel.workload.tasks import Delay as Delay
from ptaskmodel.workload.tasks import Execution as Execution
from ptaskmodel.workload.tasks import Flow as Flow
from ptaskmodel.workload.tasks import ParallelTask as ParallelTask
from ptaskmodel.workload.tasks import Sequence as Sequence
from ptaskmodel.workload.tasks import Task as Task
from ptaskmodel.workload.tasks import closed_loop as closed_loop
from ptaskmodel.workload.works import DelayWork as DelayWork
from ptaskmodel.workload.works import HomogeneousWork as HomogeneousWork
from ptaskmodel.workload.works import ParallelWork as ParallelWork
from ptaskmodel.workload.works import SequenceWork as SequenceWork
from ptaskmodel.workload.works import Work as Work

PATTERNS: dict
