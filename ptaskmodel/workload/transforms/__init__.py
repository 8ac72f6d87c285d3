"""From a workload to another: cut, shuffled, sampled, scaled, drawn again, made parallel tasks."""
