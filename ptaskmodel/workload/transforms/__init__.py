"""From a workload to another: windows cut out, delays made parallel tasks."""
