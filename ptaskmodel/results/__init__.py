"""What a simulation leaves behind: records, traces, pictures, reports."""
