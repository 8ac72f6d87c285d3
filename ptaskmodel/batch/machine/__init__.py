"""The machine of a batch: hosts, cores, memory, failures and maintenance."""
