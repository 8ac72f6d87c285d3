"""SimGrid quantities ("1.25GBps", "10us", "1Gf") to and from SI floats."""

from __future__ import annotations
