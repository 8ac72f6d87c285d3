"""``python -m ptaskmodel`` is the same as ``ptaskmodel``."""

import sys

from ptaskmodel.cli import main

sys.exit(main())
