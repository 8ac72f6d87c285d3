"""What hosts, links, tasks and jobs cost in joules: a meter on the stream of the core."""
