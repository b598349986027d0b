# SPDX-License-Identifier: Apache-2.0
"""PCCL without torch: the communicator over buffers, and the programs of collectives.

A *buffer* is an object that exposes C-contiguous host memory: a numpy array, an ``array.array``, a
``bytearray``, a ``memoryview``; by DLPack a CPU tensor of torch, or an array of another library; or
an object with ``__array_interface__``. Element types are bool, integers, float16, bfloat16 (of
torch, or ml_dtypes), float32, float64, complex64 and complex128; float8_e4m3fn, float8_e5m2,
strings, void and longdouble can be moved, but not reduced. Other types (objects, fields, packed
structures, times, another byte order) are refused. All buffers of one call have one type.

A buffer that a rank only sends may be read-only; this includes the ``x`` of a broadcast's root. If
a collective's buffer is strided, if an output is read-only, or if two outputs share memory, all
ranks refuse the call and nothing is written: the rank with the bad buffer raises
InvalidArgumentError, and the other ranks raise MismatchError.
"""

from pccl._core.capsule import Capsule as Capsule
from pccl._core.capsule import Piece as Piece
from pccl._core.capsule import check_sizes as check_sizes
from pccl._core.capsule import export_msccl as export_msccl
from pccl._core.capsule import import_msccl as import_msccl
from pccl._core.capsule import import_mscclpp as import_mscclpp
from pccl._core.capsule import unproven_msccl as unproven_msccl
from pccl._core.capsule import unproven_mscclpp as unproven_mscclpp
from pccl._core.capsule import unproven_schedule as unproven_schedule
from pccl._core.cluster import Controller as Controller
from pccl._core.cluster import PhaseNetwork as PhaseNetwork
from pccl._core.cluster import ProgressBoard as ProgressBoard
from pccl._core.collectives import PremulSum as PremulSum
from pccl._core.communicator import Communicator as Communicator
from pccl._core.device import DeviceGroup as DeviceGroup
from pccl._core.device import DeviceMemory as DeviceMemory
from pccl._core.device import DevicePlan as DevicePlan
from pccl._core.device import PlannedLaunch as PlannedLaunch
from pccl._core.device import device_plan as device_plan
from pccl._core.device import gpu_path as gpu_path
from pccl._core.device import gpus_measured_for as gpus_measured_for
from pccl._core.device import planned_launches as planned_launches
from pccl._core.events import DoneQueue as DoneQueue
from pccl._core.events import Event as Event
from pccl._core.memory import GpuMemory as GpuMemory
from pccl._core.memory import GpuWorkspace as GpuWorkspace
from pccl._core.memory import Memory as Memory
from pccl._core.memory import Workspace as Workspace
from pccl._core.net_plugin import net_plugin_report as net_plugin_report
from pccl._core.operator import Operator as Operator
from pccl._core.p2p import _echo as _echo
from pccl._core.p2p import _lanes_to_an_equal as _lanes_to_an_equal
from pccl._core.p2p import _P2pMemory as _P2pMemory
from pccl._core.p2p import _P2pMessage as _P2pMessage
from pccl._core.p2p import _P2pPlan as _P2pPlan
from pccl._core.p2p import _P2pRemoteMemory as _P2pRemoteMemory
from pccl._core.p2p import _P2pSession as _P2pSession
from pccl._core.p2p import _P2pTransfer as _P2pTransfer
from pccl._core.p2p import _P2pWork as _P2pWork
from pccl._core.p2p import _PublishedStore as _PublishedStore
from pccl._core.p2p import _RendezvousStore as _RendezvousStore
from pccl._core.p2p import _time_round_trips as _time_round_trips
from pccl._core.prediction import Prediction as Prediction
from pccl._core.process import costs_path as costs_path
from pccl._core.process import flight_record_json as flight_record_json
from pccl._core.process import machine_costs as machine_costs
from pccl._core.process import request_history as request_history
from pccl._core.process import request_status as request_status
from pccl._core.process import set_log_level as set_log_level
from pccl._core.process import topology_hash as topology_hash
from pccl._core.process import tuning_path as tuning_path
from pccl._core.process import usable_cores as usable_cores
from pccl._core.rdma import _doctor_secret as _doctor_secret
from pccl._core.rdma import _RdmaDoctor as _RdmaDoctor
from pccl._core.rdma import rdma_report as rdma_report
from pccl._core.schedule import Schedule as Schedule
from pccl._core.schedule import algorithms as algorithms
from pccl._core.schedule import generate as generate
from pccl._core.schedule import programs_of as programs_of
from pccl._core.schedule import schedule_of as schedule_of
from pccl._core.simulator import Network as Network
from pccl._core.simulator import Replay as Replay
from pccl._core.simulator import memory_speed as memory_speed
from pccl._core.simulator import one_machine as one_machine
from pccl._core.simulator import one_switch as one_switch
from pccl._core.simulator import ring_of_circuits as ring_of_circuits
from pccl._core.simulator import this_machine as this_machine
from pccl._core.simulator import two_levels as two_levels
from pccl._core.topology import JobHost as JobHost
from pccl._core.topology import JobLink as JobLink
from pccl._core.topology import JobRail as JobRail
from pccl._core.topology import JobTopology as JobTopology
from pccl._core.topology import Topology as Topology
from pccl._core.topology import TopologyChannel as TopologyChannel
from pccl._core.topology import TopologyFact as TopologyFact
from pccl._core.topology import TopologyNode as TopologyNode
from pccl._core.topology import TopologyPath as TopologyPath
from pccl._core.topology import TopologyPlan as TopologyPlan
from pccl._core.topology import TopologyWarning as TopologyWarning
from pccl._core.topology import calibration_path as calibration_path
from pccl._core.topology import load_calibration as load_calibration
from pccl._core.topology import measure_gpu_copies as measure_gpu_copies
from pccl._core.types import _Store as _Store
