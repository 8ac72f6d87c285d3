"""An example of a policy of one's own: small jobs first, but nobody waits for ever.

Run it with

    ptaskmodel batch PLATFORM WORKLOAD --policy small_first.py:SmallFirst

and, to change how long is too long, --policy-option patience_s=7200.
"""


class SmallFirst:
    """Jobs that waited more than ``patience_s`` go first, in order; then the smallest that fit."""

    def __init__(self, patience_s=3600.0):
        self.patience_s = patience_s
        self.order = lambda job: job.num_hosts

    def decide(self, view):
        late = [job for job in view.queue if view.now - job.submit_time_s > self.patience_s]
        for job in sorted(late, key=lambda job: job.submit_time_s):
            if not view.fits(job):
                return
            yield job
        for job in view.queue:
            if view.is_waiting(job) and view.fits(job):
                yield job
