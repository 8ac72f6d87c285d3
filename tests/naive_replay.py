"""A naive interpreter of time-independent traces: a generator a rank, all rates anew at each event.

Written from the description of the format, of SMPI's protocol and of its default collectives; it
shares no code with `ptaskmodel.mpi`. One rank a host or several, SMPI's network model.
"""

from __future__ import annotations

import math

from ptaskmodel.workload.actions import DATATYPE_BYTES

LATENCY = [
    (65472, 11.6436), (15424, 3.48845), (9376, 2.59299), (5776, 2.18796), (3484, 1.88101),
    (1426, 1.61075), (732, 1.9503), (257, 1.95341), (0, 2.01467),
]  # fmt: skip
BANDWIDTH = [
    (65472, 0.940694), (15424, 0.697866), (9376, 0.58729), (5776, 1.08739), (3484, 0.77493),
    (1426, 0.608902), (732, 0.341987), (257, 0.338112), (0, 0.812084),
]  # fmt: skip
DETACHED = 65536


def factor(table, size):
    return next(value for above, value in table if size > above)


class Job:
    """A computation or a transfer: what it asks of each resource, what it has left to do."""

    def __init__(self, use, amount, bound, penalty, begins, over):
        self.use, self.left, self.bound, self.penalty = use, amount, bound, penalty
        self.begins, self.over = begins, over


def shared(jobs, capacity):
    """Weighted max-min fair rates, by raising all together."""
    rate, left, rising = {}, dict(capacity), list(jobs)
    while rising:
        steps = [(job.bound * job.penalty, None) for job in rising]
        for r in {r for job in rising for r in job.use}:
            slope = sum(job.use[r] / job.penalty for job in rising if r in job.use)
            steps.append((max(left[r], 0.0) / slope, r))
        theta, full = min(steps, key=lambda step: step[0])
        stop = [
            job
            for job in rising
            if (full in job.use if full is not None else job.bound * job.penalty <= theta)
        ]
        for job in stop:
            rate[job] = theta / job.penalty
            for r, a in job.use.items():
                left[r] -= a * rate[job]
            rising.remove(job)
    return rate


class World:
    """Ranks on the hosts of a platform."""

    def __init__(self, platform, hosts, texts):
        self.platform, self.hosts, self.n = platform, hosts, len(hosts)
        self.now, self.jobs, self.alarms, self.ready = 0.0, [], [], []
        self.sent, self.awaited, self.test_misses = [], [], 1
        lines = [[line.split()[1:] for line in text.splitlines()] for text in texts]
        self.own_bytes = 8 if len(lines[-1][0]) > 1 else 1
        self.ends = [None] * self.n
        self.ready = [(rank, self.run(rank, own)) for rank, own in enumerate(lines)]
        self.capacity = {("host", h.name): h.speed_flops * h.cores for h in platform.hosts}
        self.capacity |= {("link", link.name): link.bandwidth_Bps for link in platform.all_links}

    # --- time -------------------------------------------------------------------------------

    def play(self):
        """The date at which each rank ends."""
        while True:
            while self.ready:
                rank, program = self.ready.pop(0)
                try:
                    self.wait_for(rank, program, next(program))
                except StopIteration:
                    self.ends[rank] = self.now
            if all(end is not None for end in self.ends):
                return self.ends
            running = [job for job in self.jobs if job.begins <= self.now]
            rates = shared(running, self.capacity)
            dates = [alarm[0] for alarm in self.alarms]
            dates += [job.begins for job in self.jobs if job.begins > self.now]
            dates += [self.now + job.left / rates[job] for job in running]
            date = min(dates)
            for job in running:
                job.left -= rates[job] * (date - self.now)
            over = [job for job in running if job.left <= rates[job] * 1e-13 * max(1.0, date)]
            self.now = date
            due = [alarm for alarm in self.alarms if alarm[0] <= date]
            self.alarms = [alarm for alarm in self.alarms if alarm[0] > date]
            for alarm in due:
                self.ready.append(alarm[1:])
            for job in over:
                self.jobs.remove(job)
                job.over()
            self.wake()

    def wait_for(self, rank, program, what):
        """What a rank yields: ("until", date) or requests that are to be over."""
        if what[0] == "until":
            self.alarms.append((what[1], rank, program))
        else:
            self.waiting = [*getattr(self, "waiting", []), (what[1], rank, program)]
            self.wake()

    def wake(self):
        still = []
        for entry in getattr(self, "waiting", []):
            done = all(request["over"] for request in entry[0])
            (self.ready if done else still).append(entry[1:] if done else entry)
        self.waiting = still

    def compute(self, rank, flops):
        request = {"over": flops <= 0}
        if flops > 0:
            host = self.platform.host(self.hosts[rank])
            use = {("host", host.name): 1.0}
            job = Job(
                use, flops, host.speed_flops, 1.0, self.now, lambda: request.update(over=True)
            )
            self.jobs.append(job)
        return request

    # --- messages ---------------------------------------------------------------------------

    def post(self, sends, source, target, tag, size=0):
        request = {"over": sends and size < DETACHED, "name": (source, target, tag)}
        message = {"name": (source, target, tag), "request": request, "size": size}
        own, others = (self.sent, self.awaited) if sends else (self.awaited, self.sent)
        other = next((o for o in others if self.meet(message["name"], o["name"])), None)
        if other is None:
            own.append(message)
            return request
        others.remove(other)
        source, target = (source, target) if sends else other["name"][:2]
        size = size if sends else other["size"]
        self.fly(source, target, size + 16, (request, other["request"]))
        return request

    @staticmethod
    def meet(one, two):
        sources, tags = {one[0], two[0]}, {one[2], two[2]}
        same_tag = len(tags) == 1 or (-444 in tags and max(tags) >= 0)
        return one[1] == two[1] and (len(sources) == 1 or -555 in sources) and same_tag

    def fly(self, source, target, size, requests):
        a, b = self.hosts[source], self.hosts[target]
        there, back = self.platform.route(a, b), self.platform.route(b, a)
        links = [self.platform.link(name) for name in there.links]
        use = {}
        for route, amount in ((there, 1.0), (back, 0.05)):
            for name in route.links:  # a FATPIPE, here a loopback, is only a bound
                if self.platform.link(name).policy != "FATPIPE":
                    use["link", name] = use.get(("link", name), 0.0) + amount
        latency = there.latency_s
        penalty = latency + sum(8775.0 / link.bandwidth_Bps for link in links)
        bound = min(link.bandwidth_Bps for link in links)
        if latency > 0:
            bound = min(bound, 4194304 / (2 * latency))
        begins = self.now + latency * factor(LATENCY, size)

        def over():
            for request in requests:
                request["over"] = True

        amount = size / factor(BANDWIDTH, size)
        self.jobs.append(Job(use, amount, bound, penalty, begins, over))

    # --- what ranks do ----------------------------------------------------------------------

    def run(self, r, lines):
        pending = []
        for words in lines:
            action, fields = words[0], [float(word) for word in words[1:]]
            if action == "compute":
                yield "all", [self.compute(r, fields[0])]
            elif action == "sleep":
                yield "until", self.now + fields[0]
            elif action in ("send", "isend", "recv", "irecv"):
                sends, other, tag = "send" in action, int(fields[0]), fields[1]
                size = int(fields[2]) * self.unit(fields, 3)
                ends = (r, other) if sends else (other, r)
                request = self.post(sends, *ends, tag, size if sends else 0)
                if action[0] == "i":
                    pending.append(request)
                else:
                    yield "all", [request]
            elif action == "sendRecv":
                to, source = int(fields[1]), int(fields[3])
                if not to == source == r:
                    size = int(fields[0]) * self.unit(fields, 4)
                    both = [self.post(True, r, to, 0.0, size), self.post(False, source, r, 0.0)]
                    yield "all", both
            elif action == "wait":
                name = (int(fields[0]), int(fields[1]), fields[2])
                found = next((q for q in pending if q["name"] == name), None)
                if found is not None:
                    yield "all", [found]
                    pending.remove(found)
            elif action == "test":
                name = (int(fields[0]), int(fields[1]), fields[2])
                found = next((q for q in pending if q["name"] == name), None)
                if found is not None and not found.get("tested"):
                    yield "until", self.now + self.test_misses * 1e-4
                    found["tested"] = found["over"]
                    self.test_misses = 1 if found["over"] else self.test_misses + 1
            elif action == "waitall":
                yield "all", pending
                pending = []
            elif action not in ("init", "finalize"):
                yield from getattr(self, action)(r, fields)
        yield "all", pending

    def unit(self, fields, at):
        return DATATYPE_BYTES[int(fields[at])] if len(fields) > at else self.own_bytes

    # --- collectives: tags of their own, below all others -------------------------------------

    def to(self, r, other, size):
        return self.post(True, r, other, -1, size)

    def of(self, r, other):
        return self.post(False, other, r, -1)

    def after(self, r, flops):
        if flops > 0:
            yield "all", [self.compute(r, flops)]

    def barrier(self, r, fields):
        others = range(1, self.n)
        if r > 0:
            yield "all", [self.to(r, 0, 0)]
            yield "all", [self.of(r, 0)]
        else:
            yield "all", [self.of(0, k) for k in others]
            yield "all", [self.to(0, k, 0) for k in others]

    def tree(self, r, root, size):
        own, mask = (r - root) % self.n, 1
        while mask < self.n and not own & mask:
            mask *= 2
        if own:
            yield "all", [self.of(r, (own - mask + root) % self.n)]
        while (mask := mask // 2) > 0:
            if own + mask < self.n:
                yield "all", [self.to(r, (own + mask + root) % self.n, size)]

    def gathered(self, r, root, size):
        if r == root:
            yield "all", [self.of(r, k) for k in range(self.n) if k != r]
        else:
            yield "all", [self.to(r, root, size)]

    def scattered(self, r, root, sizes):
        if r == root:
            yield "all", [self.to(r, k, sizes[k]) for k in range(self.n) if k != r]
        else:
            yield "all", [self.of(r, root)]

    def bcast(self, r, fields):
        root = int(fields[1]) if len(fields) > 1 else 0
        yield from self.tree(r, root, int(fields[0]) * self.unit(fields, 2))

    def reduce(self, r, fields):
        root = int(fields[2]) if len(fields) > 2 else 0
        yield from self.gathered(r, root, int(fields[0]) * self.unit(fields, 3))
        yield from self.after(r, fields[1])

    def allreduce(self, r, fields):
        size = int(fields[0]) * self.unit(fields, 2)
        yield from self.gathered(r, 0, size)
        yield from self.tree(r, 0, size)
        yield from self.after(r, fields[1])

    def scan(self, r, fields):
        size = int(fields[0]) * self.unit(fields, 2)
        asked = [self.of(r, k) for k in range(r)]
        yield "all", asked + [self.to(r, k, size) for k in range(r + 1, self.n)]
        yield from self.after(r, fields[1])

    exscan = scan

    def gather(self, r, fields):
        yield from self.gathered(r, int(fields[2]), int(fields[0]) * self.unit(fields, 3))

    def gatherv(self, r, fields):
        n = self.n
        yield from self.gathered(r, int(fields[n + 1]), int(fields[0]) * self.unit(fields, n + 2))

    def scatter(self, r, fields):
        size = int(fields[0]) * self.unit(fields, 3)
        yield from self.scattered(r, int(fields[2]), [size] * self.n)

    def scatterv(self, r, fields):
        n = self.n
        sizes = [int(x) * self.unit(fields, n + 2) for x in fields[:n]]
        yield from self.scattered(r, int(fields[n + 1]), sizes)

    def allgather(self, r, fields, unit=None):
        size = int(fields[0]) * (self.unit(fields, 2) if unit is None else unit)
        both = []
        for k in range(self.n):
            if k != r:
                both += [self.to(r, k, size), self.of(r, k)]
        yield "all", both

    def allgatherv(self, r, fields):
        yield from self.allgather(r, fields, self.unit(fields, self.n + 1))

    def alltoallv(self, r, fields):
        n = self.n
        unit = self.unit(fields, 2 * n + 2)
        asked = [self.of(r, k) for k in range(n) if k != r]
        sent = [self.to(r, k, int(fields[1 + k]) * unit) for k in range(n) if k != r]
        yield "all", asked + sent

    def alltoall(self, r, fields):
        n, size = self.n, int(fields[0]) * self.unit(fields, 2)
        if n == 2:
            pairs = (
                size < 2 or 4 <= size < 16 or 64 <= size < 256 or 4096 <= size < 32768
                or size >= 1048576
            )  # fmt: skip
        else:
            pairs = n < 8 and 524288 <= size < 1048576
        if 16 <= n < 32 and 4 <= size < 512:
            for p in range(math.ceil(math.log2(n))):
                far = 1 << p
                part = sum(1 for b in range(1, n) if b & far) * size
                yield "all", [self.to(r, (r + far) % n, part), self.of(r, (r - far) % n)]
        elif pairs:
            for i in range(1, n):
                yield "all", [self.to(r, r ^ i, size), self.of(r, r ^ i)]
        else:
            asked = [self.of(r, (r + k) % n) for k in range(1, n)]
            yield "all", asked + [self.to(r, (r - k) % n, size) for k in range(1, n)]

    def reducescatter(self, r, fields):
        n = self.n
        counts, unit = [int(x) for x in fields[:n]], self.unit(fields, n + 1)
        if len(set(counts)) == 1:
            yield from self.gathered(r, 0, counts[0] * n * unit)
            yield from self.scattered(r, 0, [counts[0] * unit] * n)
        elif sum(counts) > 524288:
            for i in range(1, n):
                to = (r + i) % n
                yield "all", [self.to(r, to, counts[to] * unit), self.of(r, (r - i) % n)]
        else:
            assert n & (n - 1) == 0, "the tree for other numbers of ranks is not written"
            mask = 1
            while mask < n:
                own = range(r // mask * mask, r // mask * mask + mask)
                sent = sum(counts[k] for k in range(n) if k not in own)
                yield "all", [self.to(r, r ^ mask, sent * unit), self.of(r, r ^ mask)]
                mask *= 2
        yield from self.after(r, fields[n])
