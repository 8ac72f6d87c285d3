"""Builds the kernels into the module `ptaskmodel._kernels`; all else is in pyproject.toml.

Where there is no C compiler, pip brings that of ziglang along. ``PTASKMODEL_PURE=1`` leaves the
kernels out: numba compiles them then as they are called, or they run interpreted. An editable
installation builds them in place later, for one processor: ``make kernels``, or the first run.
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from ptaskmodel.kernels.module import compiler_command  # noqa: E402

IS_PURE = os.environ.get("PTASKMODEL_PURE", "0") != "0"


class BuildKernels(build_ext):
    """Has the package build its kernels, for any processor."""

    def build_extension(self, extension):
        """Build the module where the wheel takes it from."""
        if getattr(self, "editable_mode", False):
            return
        if not compiler_command():
            print("there is no C compiler: the kernels are left out", file=sys.stderr)
            return
        target = Path(self.get_ext_fullpath(extension.name)).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "ptaskmodel.kernels", "--all-levels", "--to", str(target)]
        places = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": places})
        if done.returncode:
            sys.exit("the kernels cannot be built; PTASKMODEL_PURE=1 installs without them")


kernels = Extension("ptaskmodel._kernels", [], py_limited_api=True, optional=True)
setup(
    ext_modules=[] if IS_PURE else [kernels],
    cmdclass={"build_ext": BuildKernels},
    setup_requires=[] if IS_PURE or compiler_command() else ["ziglang"],
    options={} if IS_PURE else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
