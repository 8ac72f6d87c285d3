# Written by `python tests/stubs.py`, of the table in __init__.py.
from ptaskmodel.errors import PlatformError as PlatformError
from ptaskmodel.errors import PTaskModelError as PTaskModelError
from ptaskmodel.errors import RouteError as RouteError
from ptaskmodel.errors import SharingError as SharingError
from ptaskmodel.errors import SimulationError as SimulationError
from ptaskmodel.errors import WorkloadError as WorkloadError
from ptaskmodel.platform.platform import Platform as Platform
from ptaskmodel.platform.simgrid_xml import load_platform as load_platform
from ptaskmodel.simulation.refs import Observer as Observer
from ptaskmodel.simulation.refs import TaskRecord as TaskRecord
from ptaskmodel.simulation.refs import TaskRef as TaskRef
from ptaskmodel.simulation.simulation import Simulation as Simulation
from ptaskmodel.workload.tasks import Delay as Delay
from ptaskmodel.workload.tasks import Execution as Execution
from ptaskmodel.workload.tasks import Flow as Flow
from ptaskmodel.workload.tasks import ParallelTask as ParallelTask
from ptaskmodel.workload.tasks import Sequence as Sequence
from ptaskmodel.workload.tasks import Task as Task
from ptaskmodel.workload.tasks_json import load_tasks as load_tasks
from ptaskmodel.workload.works import DelayWork as DelayWork
from ptaskmodel.workload.works import HomogeneousWork as HomogeneousWork
from ptaskmodel.workload.works import ParallelWork as ParallelWork
from ptaskmodel.workload.works import SequenceWork as SequenceWork

__version__: str
