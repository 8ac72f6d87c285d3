"""Other programs as front ends: SimPy, and schedulers that use Batsim's protocol.

`simpy` runs parallel tasks inside a SimPy simulation. All other files are the server side of
Batsim's protocol: external schedulers decide in a simulation.

A scheduler is a process at the other end of a socket; `transport` holds the socket and the session.
`messages` defines what a scheduler may send, and `events` what it receives. `scheduler` is the
policy that represents it, and `commands` executes its decisions. `jobs` registers jobs and profiles
by their names in the protocol, and `placing` maps them to hosts.
Source: Batsim's documentation and the behaviour of versions 2 to 4 (https://batsim.readthedocs.io).
"""
