"""pybatsim's EASY, which lets jobs on free hosts between those of the reservation delay it."""

from schedulers.easyBackfill import EasyBackfill


class Pybatsim_mended(EasyBackfill):
    """The same, but every free run of hosts within the reservation ends where that begins."""

    def allocFutureJob(self, first_job_res, first_job_starttime, current_time):
        found = super().allocFutureJob(first_job_res, first_job_starttime, current_time)
        self.between = [
            space
            for space in self.listFreeSpace.generator()
            if space.first_res > first_job_res[0] and space.last_res < first_job_res[-1]
        ]
        for space in self.between:
            space.length = first_job_starttime - current_time
        return found

    def allocBackFill(self, first_job, current_time):
        found = super().allocBackFill(first_job, current_time)
        for space in self.between:
            space.length = float("inf")
        return found
