"""Schedulers of others decide in our simulation: the server's side of Batsim's protocol.

After Batsim's documentation and the behaviour of versions 2 to 4 (https://batsim.readthedocs.io).
A scheduler is a process at the other end of a socket (`wires`), with which one converses (`talk`);
`messages` is what it may say, `telling` what it is told. `scheduler` is the policy that speaks for
it, `orders` what its decisions mean; `book` knows the jobs and profiles by their names there.
"""
