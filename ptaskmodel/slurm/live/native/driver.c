/* The driver's side of the virtual clock: whether all is quiet, and who wakes next.
 *
 * Quiet: two walks over all tasks of the supervisor and of all processes below it.  A task is asleep
 * in both and has not been put on a processor in between (schedstat's third number), and no process or
 * task has come or gone: so nothing ran between the walks, and nothing will before the clock moves,
 * for what the kernel delivers between processes of one machine it delivers within the sender's call.
 * In the first walk the number is read before the state, in the second after it: what is woken
 * between the walks is then seen running, or seen to have run.
 *
 * A state of sleep alone proves nothing: whoever reaps a child, or looks whether what it waits for is
 * there, is already in it, and on a busy machine it may lose the processor just then.  So the first walk
 * also reads the file `syscall`, for which the kernel waits until the task has left the run queue. */
#define _GNU_SOURCE
#include "clock.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { REACHED, HAPPENED, PAUSED, NOBODY };
/* How long a thread that was woken may take to lie down again before tasks are looked at, ns. */
#define LISTEN 300000
#define REAP_EVERY 4096
#define MOST_TASKS 65536
#define DENIED (-1)
#define MOST_RACERS 256

struct task {
  int tid;
  long runs;
};
struct process {
  int pid, begin, count; /* its tasks */
};
struct files {
  int state, runs, call, children; /* 1 + descriptor; 0: not open; DENIED: not ours to read */
};

struct driver {
  struct page *page;
  int supervisor, watched, grows, quiet, express, busy, waker;
  int most_pids, most_open, open; /* files of tasks, kept open */
  int64_t seen; /* size of the file that grows */
  uint64_t messages;
  struct files *files; /* by task */
  int *folders;        /* by process: 1 + descriptor */
  struct task *tasks;
  struct process *processes;
  int num_processes, num_tasks;
  int racers[MOST_RACERS], num_racers; /* processes, in the order in which they wake */
  uint64_t rounds, wakes, quick, local, walks; /* statistics, but for the first */
};

static int64_t real_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * NS + t.tv_nsec;
}

void *driver_open(int fd, int64_t first, int64_t slack, int supervisor, int watched, int most_open, int express) {
  struct driver *d = calloc(1, sizeof *d);
  long most = 32768;
  FILE *f = fopen("/proc/sys/kernel/pid_max", "r");
  if (f) {
    if (fscanf(f, "%ld", &most) != 1) most = 1 << 22;
    fclose(f);
  }
  if (!d || ftruncate(fd, sizeof *d->page)) return NULL;
  d->page = mmap(NULL, sizeof *d->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  d->files = calloc(most + 1, sizeof *d->files);
  d->folders = calloc(most + 1, sizeof *d->folders);
  d->tasks = calloc(MOST_TASKS, sizeof *d->tasks);
  d->processes = calloc(MOST_TASKS, sizeof *d->processes);
  if (d->page == MAP_FAILED || !d->files || !d->folders || !d->tasks || !d->processes) return NULL;
  d->most_pids = most;
  d->most_open = most_open;
  d->page->first = d->page->now = first;
  d->page->slack = slack;
  for (int k = 0; k < SLOTS; k++) d->page->wakes[k] = NEVER;
  d->supervisor = supervisor;
  d->watched = watched;
  d->express = express;
  d->grows = -1;
  return d;
}

static void forget(struct driver *d, int *kept) {
  if (*kept > 0) close(*kept - 1), d->open--;
  *kept = 0;
}

static void forget_files(struct driver *d, struct files *f) {
  forget(d, &f->state), forget(d, &f->runs), forget(d, &f->call), forget(d, &f->children);
}

static void forget_all(struct driver *d) {
  for (int k = 0; k <= d->most_pids; k++) {
    forget(d, &d->folders[k]);
    forget_files(d, &d->files[k]);
  }
}

void driver_close(struct driver *d) {
  forget_all(d);
  munmap(d->page, sizeof *d->page);
  free(d->files), free(d->folders), free(d->tasks), free(d->processes), free(d);
}

int64_t driver_now(struct driver *d) { return d->page->now; }
int driver_busy(struct driver *d) { return d->busy; }
void driver_touched(struct driver *d) { d->quiet = 0, d->waker = 0, d->page->round++; }
void driver_racers(struct driver *d, const int *pids, int count) {
  d->num_racers = count < MOST_RACERS ? count : MOST_RACERS;
  memcpy(d->racers, pids, d->num_racers * sizeof *pids);
}
void driver_grows(struct driver *d, int fd) { d->grows = fd, d->seen = 0; }
void driver_seen(struct driver *d, int64_t size) { d->seen = size; }
void driver_statistics(struct driver *d, uint64_t *out) {
  out[0] = d->wakes, out[1] = d->quick, out[2] = d->local, out[3] = d->walks;
}

/* ---- tasks ---- */

/* Open a file of /proc if it is not kept open; 0: it is gone. */
static int opened(struct driver *d, int *kept, const char *path, int flags) {
  if (*kept) return 1;
  if (d->open >= d->most_open) forget_all(d);
  *kept = open(path, O_RDONLY | O_CLOEXEC | flags) + 1;
  d->open += *kept > 0;
  return *kept > 0;
}

/* The content of such a file; -1: the task is gone, or it may not be read. */
static int content(struct driver *d, int *kept, int pid, int tid, const char *name, char *out, int size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, tid, name);
  for (int turn = 0; turn < 2 && *kept != DENIED && opened(d, kept, path, 0); turn++) {
    int got = pread(*kept - 1, out, size - 1, 0), fault = errno;
    if (got >= 0) return out[got] = 0, got;
    forget_files(d, &d->files[tid]); /* all are of an earlier owner of this number */
    if (fault == EPERM || fault == EACCES) *kept = DENIED;
  }
  return -1;
}

struct entry {
  uint64_t inode;
  int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[];
};

/* The tasks of a process, from which they begin in `out`; -1: it is gone. */
static int tasks_of(struct driver *d, int pid, struct task *out, int room) {
  char path[40], list[16384];
  int *kept = &d->folders[pid];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  for (int turn = 0; turn < 2 && opened(d, kept, path, O_DIRECTORY); turn++) {
    int n = 0, got;
    lseek(*kept - 1, 0, SEEK_SET);
    while ((got = syscall(SYS_getdents64, *kept - 1, list, sizeof list)) > 0) {
      for (int at = 0; at < got;) {
        struct entry *e = (void *)(list + at);
        int tid = atoi(e->name);
        at += e->size;
        if (tid > 0 && tid <= d->most_pids && n < room) out[n++].tid = tid;
      }
    }
    if (n) return n;
    forget(d, kept);
  }
  return -1;
}

/* Its state if that is one of sleep, or of what is over; 0: it is not. */
static int asleep(struct driver *d, int pid, int tid) {
  char text[512], *end;
  if (content(d, &d->files[tid].state, pid, tid, "stat", text, sizeof text) <= 0) return 0;
  end = strrchr(text, ')');
  if (end && strchr("SZXTt", end[2])) return end[2];
  d->busy = tid;
  return 0;
}

/* Whether a task in a state of sleep has left the run queue.  Where the kernel does not tell, it has. */
static int has_left(struct driver *d, int pid, int tid) {
  char text[160];
  int got = content(d, &d->files[tid].call, pid, tid, "syscall", text, sizeof text);
  if (got <= 0 || strncmp(text, "running", 7)) return 1;
  d->busy = tid;
  return 0;
}

static long runs(struct driver *d, int pid, int tid) {
  char text[96], *last;
  if (content(d, &d->files[tid].runs, pid, tid, "schedstat", text, sizeof text) <= 0) return -1;
  last = strrchr(text, ' ');
  return last ? atol(last) : -1;
}

static int add(struct driver *d, int pid) {
  if (d->num_processes >= MOST_TASKS || pid > d->most_pids) return 0;
  d->processes[d->num_processes++] = (struct process){pid, 0, 0};
  return 1;
}

static int add_children(struct driver *d, int pid, int tid) {
  char text[65536], *at = text, *end;
  if (content(d, &d->files[tid].children, pid, tid, "children", text, sizeof text) < 0) return 0;
  for (long child; child = strtol(at, &end, 10), end != at; at = end)
    if (!add(d, child)) return 0;
  return 1;
}

/* The first walk over a process; 0: it is not asleep. */
static int first_look(struct driver *d, struct process *p, int descend) {
  p->begin = d->num_tasks;
  p->count = tasks_of(d, p->pid, d->tasks + p->begin, MOST_TASKS - p->begin);
  if (p->count < 0) return 0;
  d->num_tasks += p->count;
  for (struct task *t = d->tasks + p->begin; t < d->tasks + d->num_tasks; t++) {
    if ((t->runs = runs(d, p->pid, t->tid)) < 0) return 0;
    int state = asleep(d, p->pid, t->tid);
    if (!state || (state == 'S' && !has_left(d, p->pid, t->tid))) return 0;
    if (descend && !add_children(d, p->pid, t->tid)) return 0;
  }
  return 1;
}

/* The second walk over it; 0: something has changed. */
static int second_look(struct driver *d, const struct process *p) {
  static struct task again[MOST_TASKS];
  if (tasks_of(d, p->pid, again, MOST_TASKS) != p->count) return 0;
  for (int k = 0; k < p->count; k++) {
    const struct task *t = d->tasks + p->begin + k;
    if (again[k].tid != t->tid || !asleep(d, p->pid, t->tid) || runs(d, p->pid, t->tid) != t->runs) return 0;
  }
  return 1;
}

static int all_quiet(struct driver *d) {
  struct process *p = d->processes;
  d->walks++;
  d->num_processes = d->num_tasks = 0;
  add(d, d->supervisor);
  if (!first_look(d, p, 1)) return 0;
  int below = d->num_processes; /* the supervisor's own children are behind it */
  for (int k = 1; k < d->num_processes; k++)
    if (!first_look(d, p + k, 1)) return 0;
  int all = d->num_processes;
  add_children(d, d->supervisor, d->supervisor); /* those forked twice have come to the supervisor */
  if (d->num_processes - all != below - 1) return 0;
  for (int k = 1; k < below; k++)
    if (p[k].pid != p[all + k - 1].pid) return 0;
  for (int k = 0; k < all; k++)
    if (!second_look(d, p + k)) return 0;
  return 1;
}

static int is_over(struct driver *d, int pid) { return kill(pid, 0) || asleep(d, pid, pid) == 'Z'; }

/* Whether all is quiet, given that nobody has told another process anything since it was; an end tells. */
static int still_quiet(struct driver *d) {
  struct process *p = d->processes;
  if (!d->waker || d->page->messages != d->messages || is_over(d, d->waker)) return all_quiet(d);
  d->num_processes = d->num_tasks = 0;
  add(d, d->waker);
  if (!first_look(d, p, 0) || !second_look(d, p) || d->page->messages != d->messages) return 0;
  d->local++;
  return 1;
}

/* 0: not before the date `until` of the real clock */
static int settle(struct driver *d, int64_t until) {
  int64_t pause = 10000;
  while (!d->quiet) {
    d->busy = 0;
    if ((d->quiet = still_quiet(d))) break;
    if (real_ns() > until) return 0;
    struct timespec t = {0, pause};
    nanosleep(&t, NULL);
    if (pause < 200000) pause += pause / 4;
  }
  d->waker = 0;
  return 1;
}

/* ---- moving the clock ---- */

static void set_free(struct driver *d, int k) {
  d->page->wakes[k] = NEVER;
  d->page->slots[k].state = FREE;
}

static void reap(struct driver *d) {
  for (int k = 0; k < d->page->used; k++) {
    struct slot *s = &d->page->slots[k];
    if (s->state != FREE && syscall(SYS_tgkill, s->pid, s->tid, 0)) set_free(d, k);
  }
}

/* The place among the racers of a thread that waits for `date`: of those of one process, the first that began is
 * the first.  Most threads are none. */
static int racer(struct driver *d, const struct slot *s, int64_t date) {
  int before = 0, place = 0;
  while (place < d->num_racers && d->racers[place] != s->pid) place++;
  if (place == d->num_racers) return place;
  for (int k = 0, used = d->page->used; k < used; k++) {
    const struct slot *o = &d->page->slots[k];
    before += d->page->wakes[k] == date && o->round == s->round && o->pid == s->pid && o->tid < s->tid;
  }
  while (place < d->num_racers && (d->racers[place] != s->pid || before--)) place++;
  return place;
}

/* Those that wait for a date wake as they lay down; racers that did so in one round, in their own order. */
static int earliest(struct driver *d) {
  struct page *page = d->page;
  int64_t date = NEVER;
  int best = -1;
  for (int k = 0, used = page->used; k < used; k++) {
    int64_t its = atomic_load_explicit(&page->wakes[k], memory_order_relaxed);
    if (its > date || its == NEVER) continue;
    if (its == date && page->slots[k].order > page->slots[best].order) continue;
    best = k, date = its;
  }
  int place = best < 0 ? d->num_racers : racer(d, &page->slots[best], date);
  if (place == d->num_racers) return best;
  uint64_t round = page->slots[best].round;
  for (int k = 0, used = page->used; k < used; k++) {
    if (page->wakes[k] != date || page->slots[k].round != round) continue;
    int its = racer(d, &page->slots[k], date);
    if (its < place) best = k, place = its;
  }
  return best;
}

/* Wait until a thread lies down again, but not for long. */
static void await(struct driver *d, struct slot *s, uint64_t order) {
  struct timespec rest = {0, LISTEN};
  uint32_t bell = d->page->bell;
  atomic_store(&d->page->listens, 1);
  if (s->order == order || s->state != ASLEEP)
    syscall(SYS_futex, &d->page->bell, FUTEX_WAIT, bell, &rest, NULL, 0);
  atomic_store(&d->page->listens, 0);
}

static void wake(struct driver *d, int k) {
  struct slot *s = &d->page->slots[k];
  int gone = 0;
  uint64_t order = s->order, acts = s->acts;
  int tid = s->tid;
  int place = racer(d, s, d->page->wakes[k]);
  if (place < d->num_racers) d->racers[place] = 0; /* its turn is over */
  d->wakes++;
  d->page->round++;
  d->quiet = 0;
  d->waker = d->express ? s->pid : 0;
  d->messages = d->page->messages;
  d->page->wakes[k] = NEVER;
  s->word = DATE_REACHED;
  if (s->kind == IN_POLL) gone = syscall(SYS_tgkill, s->pid, tid, WAKE_SIGNAL) < 0;
  else if (!syscall(SYS_futex, &s->word, FUTEX_WAKE, 1, NULL, NULL, 0)) gone = syscall(SYS_tgkill, s->pid, tid, 0) < 0;
  if (gone) set_free(d, k);
  if (gone || !d->express) {
    d->waker = 0;
    return;
  }
  await(d, s, order);
  /* If it lies down again and has woken nobody, all sleep. */
  if (s->order != order && s->state == ASLEEP && s->acts == acts && s->tid == tid) d->quiet = 1, d->quick++;
}

static int something(struct driver *d) {
  struct pollfd f = {d->watched, POLLIN, 0};
  struct stat now;
  if (poll(&f, 1, 0) > 0) return 1;
  return d->grows >= 0 && !fstat(d->grows, &now) && now.st_size > d->seen;
}

/* Moves the clock from wake-up to wake-up, for `turn` ns of real time.  REACHED: it is at `limit`;
 * HAPPENED: what is watched has something to say; NOBODY: no one waits for a date.  PAUSED with
 * `busy` set: a task has not slept for so long. */
int driver_run(struct driver *d, int64_t limit, int64_t turn) {
  int64_t until = real_ns() + turn;
  for (int checked = 0;; checked = d->quiet) {
    if (!settle(d, until)) return PAUSED;
    d->busy = 0;
    if (!checked && something(d)) return HAPPENED;
    if (++d->rounds % 64 == 0 && real_ns() > until) return PAUSED;
    if (d->rounds % REAP_EVERY == 0) reap(d);
    int k = earliest(d);
    if (k < 0 && limit == NEVER) return NOBODY;
    if (k < 0 || limit <= d->page->wakes[k]) {
      if (limit > d->page->now) d->page->now = limit;
      return REACHED;
    }
    if (d->page->wakes[k] > d->page->now) d->page->now = d->page->wakes[k];
    wake(d, k);
  }
}
