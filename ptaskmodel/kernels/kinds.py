"""Which functions use each kernel with all kinds of arguments that it is called with.

They stand in the rooms of their kernels; late kernels have an example of their own.
"""

PREPARE = (
    "ptaskmodel.sharing.bmf_hard:prepare_kernels",
    "ptaskmodel.simulation.kernel_kinds:prepare",
    "ptaskmodel.replay.kernel_kinds:prepare",
    "ptaskmodel.batch.compiled_loop:prepare_kernels",
    "ptaskmodel.batch.compiled_ptasks:prepare_kernels",
    "ptaskmodel.batch.slurm.quick_cycle:prepare_kernels",
    "ptaskmodel.energy.meter:prepare_kernels",
)
