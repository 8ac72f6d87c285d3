"""Packets in queues: flows of packets through first-in first-out links, by windows or by pauses."""
