"""The energy of hosts, links, tasks and jobs, J: a meter that listens to the engine's events."""
