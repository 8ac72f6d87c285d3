"""Builds the kernels into the module `ptaskmodel._kernels`; all else is in pyproject.toml.

``PTASKMODEL_PURE=1`` leaves them out, as does a machine without a C compiler: numba compiles them
then as they are called, or they run interpreted. An editable installation builds them in place
later, for one processor: ``make kernels``, or the first run.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
IS_PURE = os.environ.get("PTASKMODEL_PURE", "0") != "0"


class BuildKernels(build_ext):
    """Has the package build its kernels, for any processor."""

    def build_extension(self, extension):
        """Build the module where the wheel takes it from."""
        if getattr(self, "editable_mode", False):
            return
        if not shutil.which(shlex.split(os.environ.get("CC") or "cc")[0]):
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
    options={} if IS_PURE else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
