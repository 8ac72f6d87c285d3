"""When: activities on resources, one queue of dates, one stream of events."""
