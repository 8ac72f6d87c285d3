"""The engine: activities on resources, one event queue, one stream of events."""
