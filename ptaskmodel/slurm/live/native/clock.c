/* Preloaded into Slurm's daemons and clients: their clock is the one of the shared page.
 *
 * Dates come from the page.  Sleeps, waits with a limit and polls with a limit write their date into
 * a slot and block until the driver ends them.  Sockets, files, locks and processes stay real; calls
 * that may wake another thread are counted, then done, so that the driver knows whether a thread
 * that it woke woke others.  $PTASKMODEL_CLOCK names the page. */
#define _GNU_SOURCE
#include "clock.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static struct page *page;
static pthread_key_t when_gone;
static __thread struct slot *mine;
static int supervisor, leashed;

/* ---- threads and their slots ---- */

static _Atomic int64_t *wakes(struct slot *s) { return &page->wakes[s - page->slots]; }

static void give_back(void *given) {
  struct slot *s = given;
  mine = NULL;
  *wakes(s) = NEVER;
  atomic_store(&s->state, FREE);
}

/* A daemon ends with the supervisor ($PTASKMODEL_SUPERVISOR) whatever happens.  One that is forked twice is its
 * child only after a moment, so this is tried again until it is. */
static void leash(void) {
  if (leashed || !supervisor || getppid() != supervisor) return;
  leashed = 1;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(1);
}

static struct slot *me(void) {
  if (mine || !page) return mine;
  leash();
  for (int k = 0; k < SLOTS; k++) {
    struct slot *s = &page->slots[k];
    int none = FREE;
    if (atomic_load(&s->state) != FREE || !atomic_compare_exchange_strong(&s->state, &none, AWAKE)) continue;
    *wakes(s) = NEVER;
    s->pid = getpid();
    s->tid = syscall(SYS_gettid);
    int used = page->used;
    while (used <= k && !atomic_compare_exchange_weak(&page->used, &used, k + 1)) continue;
    mine = s;
    pthread_setspecific(when_gone, s);
    return s;
  }
  abort();
}

static void act(void) {
  struct slot *s = me();
  if (s) s->acts++;
}

static void message(void) {
  if (!page) return;
  page->messages++;
  act();
}

static void handle(int signal) { (void)signal; }
static void forked(void);

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("PTASKMODEL_CLOCK"), *above = getenv("PTASKMODEL_SUPERVISOR");
  supervisor = above ? atoi(above) : 0;
  leash();
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *p = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (p == MAP_FAILED) return;
  if (getenv("PTASKMODEL_ALONE")) { /* a client, whose environment becomes that of a job */
    const char *ours[] = {"LD_PRELOAD", "PTASKMODEL_CLOCK", "PTASKMODEL_ADDRESS", "PTASKMODEL_SUPERVISOR", "PTASKMODEL_ALONE"};
    for (int k = 0; k < 5; k++) unsetenv(ours[k]);
  }
  pthread_key_create(&when_gone, give_back);
  pthread_atfork(NULL, NULL, forked);
  struct sigaction action = {.sa_handler = handle};
  sigaction(WAKE_SIGNAL, &action, NULL);
  page = p;
}

static int64_t now(void) { return atomic_load(&page->now); }
static int64_t after(int64_t date) { return date > now() ? date - now() : 0; }
static int64_t ns_of(const struct timespec *t) { return t->tv_sec * NS + t->tv_nsec; }
static void put(struct timespec *t, int64_t v) { *t = (struct timespec){v / NS, v % NS}; }

static long futex(_Atomic uint32_t *word, int what, uint32_t value) {
  return syscall(SYS_futex, word, what, value, NULL, NULL, 0);
}

/* The word was set before: from then on others may wake this thread.  The state comes last: the driver
 * waits for it. */
static void lie_down(struct slot *s, int64_t date, int kind) {
  s->kind = kind;
  s->order = atomic_fetch_add(&page->order, 1);
  s->round = page->round;
  atomic_store(wakes(s), date == NEVER ? date : date + page->slack);
  atomic_store(&s->state, ASLEEP);
  if (page->listens) {
    page->bell++;
    futex(&page->bell, FUTEX_WAKE, 1);
  }
}

static void get_up(struct slot *s) {
  atomic_store(wakes(s), NEVER);
  atomic_store(&s->state, AWAKE);
}

/* ---- dates ---- */

static int is_wall(clockid_t c) {
  return c == CLOCK_REALTIME || c == CLOCK_REALTIME_COARSE || c == CLOCK_TAI;
}
static int is_monotonic(clockid_t c) {
  return c == CLOCK_MONOTONIC || c == CLOCK_MONOTONIC_RAW || c == CLOCK_MONOTONIC_COARSE || c == CLOCK_BOOTTIME;
}
static int64_t wall_of(int64_t t) {
  return t < MONOTONIC_BELOW ? t - MONOTONIC_AT_FIRST + page->first : t;
}

int clock_gettime(clockid_t c, struct timespec *t) {
  if (!page || (!is_wall(c) && !is_monotonic(c))) return syscall(SYS_clock_gettime, c, t);
  put(t, is_wall(c) ? now() : now() - page->first + MONOTONIC_AT_FIRST);
  return 0;
}
time_t time(time_t *out) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (out) *out = t.tv_sec;
  return t.tv_sec;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  *out = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
  if (zone) memset(zone, 0, sizeof(struct timezone));
  return 0;
}

/* ---- sleeps ---- */

static int sleep_until(int64_t date) { /* 0 or EINTR */
  struct slot *s = me();
  int kind;
  if (date <= now()) {
    sched_yield();
    return 0;
  }
  s->word = WAITING;
  lie_down(s, date, ON_FUTEX);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &kind);
  while (!s->word && !(futex(&s->word, FUTEX_WAIT, WAITING) == -1 && errno == EINTR)) continue;
  pthread_setcanceltype(kind, &kind);
  int reached = s->word != WAITING;
  get_up(s);
  return reached ? 0 : EINTR;
}

int clock_nanosleep(clockid_t c, int flags, const struct timespec *t, struct timespec *rest) {
  if (!page || (!is_wall(c) && !is_monotonic(c)))
    return syscall(SYS_clock_nanosleep, c, flags, t, rest) ? errno : 0;
  int64_t date = flags & TIMER_ABSTIME ? wall_of(ns_of(t)) : now() + ns_of(t);
  int fault = sleep_until(date);
  if (fault && rest && !(flags & TIMER_ABSTIME)) put(rest, after(date));
  return fault;
}
int nanosleep(const struct timespec *t, struct timespec *rest) {
  int fault = clock_nanosleep(CLOCK_REALTIME, 0, t, rest);
  return fault ? (errno = fault, -1) : 0;
}
int usleep(useconds_t us) {
  struct timespec t = {us / 1000000, us % 1000000 * 1000};
  return nanosleep(&t, NULL);
}
unsigned sleep(unsigned seconds) {
  struct timespec t = {seconds, 0};
  return nanosleep(&t, &t) ? t.tv_sec + (t.tv_nsec > 0) : 0;
}

/* ---- conditions: a queue for each, first come, first woken; the pthread_cond_t itself stays empty ---- */

struct waiter {
  struct waiter *next, *previous;
  pthread_cond_t *condition;
  struct slot *slot;
  int queued;
};
#define BUCKETS 256
static struct waiter *heads[BUCKETS], *tails[BUCKETS];
static atomic_flag table = ATOMIC_FLAG_INIT;

static void hold(void) {
  while (atomic_flag_test_and_set(&table)) sched_yield();
}
static void release(void) { atomic_flag_clear(&table); }
static unsigned bucket_of(pthread_cond_t *c) { return (uint32_t)((uintptr_t)c >> 4) * 2654435761u >> 24; }

static void take_out(struct waiter *w) {
  unsigned b = bucket_of(w->condition);
  *(w->previous ? &w->previous->next : &heads[b]) = w->next;
  *(w->next ? &w->next->previous : &tails[b]) = w->previous;
  w->queued = 0;
}

static void forked(void) { /* the child has one thread, without a slot, and nobody waits in it */
  memset(heads, 0, sizeof heads);
  memset(tails, 0, sizeof tails);
  atomic_flag_clear(&table);
  mine = NULL;
  leashed = 0;
  pthread_setspecific(when_gone, NULL);
}

int pthread_mutex_unlock(pthread_mutex_t *m);

static int wait_on(pthread_cond_t *c, pthread_mutex_t *m, int64_t date) {
  struct waiter w = {.condition = c, .slot = me(), .queued = 1};
  unsigned b = bucket_of(c);
  if (date <= now()) { /* the mutex is let go for a moment all the same */
    pthread_mutex_unlock(m);
    sched_yield();
    pthread_mutex_lock(m);
    return ETIMEDOUT;
  }
  w.slot->word = WAITING;
  hold();
  w.previous = tails[b];
  *(w.previous ? &w.previous->next : &heads[b]) = &w;
  tails[b] = &w;
  release();
  pthread_mutex_unlock(m);
  lie_down(w.slot, date, ON_FUTEX);
  while (w.slot->word == WAITING) futex(&w.slot->word, FUTEX_WAIT, WAITING);
  get_up(w.slot);
  hold();
  int late = w.queued;
  if (late) take_out(&w);
  release();
  pthread_mutex_lock(m);
  return late ? ETIMEDOUT : 0;
}

static int wake_up(pthread_cond_t *c, int all) {
  struct slot *woken[64];
  int n;
  do {
    n = 0;
    hold();
    for (struct waiter *w = heads[bucket_of(c)], *next; w && n < 64 && (all || !n); w = next) {
      next = w->next;
      if (w->condition != c) continue;
      take_out(w);
      w->slot->word = SIGNALLED;
      woken[n++] = w->slot;
    }
    release();
    if (n) act();
    for (int k = 0; k < n; k++) futex(&woken[k]->word, FUTEX_WAKE, 1);
  } while (all && n == 64);
  return 0;
}

#define REAL(type, name, ...)                                                                      \
  static type (*real)(__VA_ARGS__);                                                                \
  if (!real) real = (type(*)(__VA_ARGS__))dlvsym(RTLD_NEXT, #name, "GLIBC_2.3.2");                 \
  if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);

int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a) {
  REAL(int, pthread_cond_init, pthread_cond_t *, const pthread_condattr_t *)
  if (!page) return real(c, a);
  memset(c, 0, sizeof *c);
  return 0;
}
int pthread_cond_destroy(pthread_cond_t *c) {
  REAL(int, pthread_cond_destroy, pthread_cond_t *)
  return page ? 0 : real(c);
}
int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) {
  REAL(int, pthread_cond_wait, pthread_cond_t *, pthread_mutex_t *)
  return page ? wait_on(c, m, NEVER) : real(c, m);
}
int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t) {
  REAL(int, pthread_cond_timedwait, pthread_cond_t *, pthread_mutex_t *, const struct timespec *)
  return page ? wait_on(c, m, wall_of(ns_of(t))) : real(c, m, t);
}
int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t k, const struct timespec *t) {
  REAL(int, pthread_cond_clockwait, pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *)
  return page ? wait_on(c, m, wall_of(ns_of(t))) : real(c, m, k, t);
}
int pthread_cond_signal(pthread_cond_t *c) {
  REAL(int, pthread_cond_signal, pthread_cond_t *)
  return page ? wake_up(c, 0) : real(c);
}
int pthread_cond_broadcast(pthread_cond_t *c) {
  REAL(int, pthread_cond_broadcast, pthread_cond_t *)
  return page ? wake_up(c, 1) : real(c);
}

/* ---- waits for input with a limit: the driver ends them by a signal that only these calls let through ---- */

static int limited_poll(struct pollfd *f, nfds_t n, int64_t date, const sigset_t *given) {
  struct slot *s = me();
  struct timespec none = {0, 0};
  sigset_t block, mask;
  sigemptyset(&block);
  sigaddset(&block, WAKE_SIGNAL);
  pthread_sigmask(SIG_BLOCK, &block, &mask);
  if (given) mask = *given;
  sigdelset(&mask, WAKE_SIGNAL);
  int ready = syscall(SYS_ppoll, f, n, &none, NULL, 0L);
  if (ready || date <= now()) return ready;
  s->word = WAITING;
  lie_down(s, date, IN_POLL);
  ready = syscall(SYS_ppoll, f, n, NULL, &mask, 8L);
  int fault = errno, reached = s->word != WAITING;
  get_up(s);
  if (ready < 0 && fault == EINTR && reached) return syscall(SYS_ppoll, f, n, &none, NULL, 0L);
  if (ready < 0) errno = fault;
  return ready;
}

int poll(struct pollfd *f, nfds_t n, int ms) {
  struct timespec none = {0, 0};
  if (!page || ms < 0) return syscall(SYS_poll, f, n, ms);
  if (!ms) return syscall(SYS_ppoll, f, n, &none, NULL, 0L);
  return limited_poll(f, n, now() + ms * 1000000LL, NULL);
}
int __poll_chk(struct pollfd *f, nfds_t n, int ms, size_t size) {
  (void)size;
  return poll(f, n, ms);
}
int ppoll(struct pollfd *f, nfds_t n, const struct timespec *t, const sigset_t *mask) {
  if (page && t && ns_of(t)) return limited_poll(f, n, now() + ns_of(t), mask);
  struct timespec copy = t ? *t : (struct timespec){0, 0};
  return syscall(SYS_ppoll, f, n, t ? &copy : NULL, mask, 8L);
}
int epoll_wait(int fd, struct epoll_event *e, int n, int ms) {
  if (page && ms > 0) {
    struct pollfd f = {fd, POLLIN, 0};
    int ready = limited_poll(&f, 1, now() + ms * 1000000LL, NULL);
    if (ready <= 0) return ready;
    ms = 0;
  }
  return syscall(SYS_epoll_pwait, fd, e, n, ms, NULL, 8L);
}
int select(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *t) {
  if (page && t && (t->tv_sec || t->tv_usec)) {
    struct pollfd f[FD_SETSIZE];
    int k = 0;
    for (int i = 0; i < n; i++) {
      int events = (r && FD_ISSET(i, r) ? POLLIN : 0) | (w && FD_ISSET(i, w) ? POLLOUT : 0) |
                   (x && FD_ISSET(i, x) ? POLLPRI : 0);
      if (events) f[k++] = (struct pollfd){i, events, 0};
    }
    if (limited_poll(f, k, now() + t->tv_sec * NS + t->tv_usec * 1000LL, NULL) < 0) return -1;
    t->tv_sec = t->tv_usec = 0;
  }
  struct timespec copy = {0, 0};
  if (t) copy = (struct timespec){t->tv_sec, t->tv_usec * 1000};
  return syscall(SYS_pselect6, n, r, w, x, t ? &copy : NULL, NULL);
}

/* ---- calls that may wake another thread: of this process (acts), or of any (messages) ---- */

#define COUNTED(count, type, name, parameters, arguments)                                          \
  type name parameters {                                                                           \
    static type(*real) parameters;                                                                 \
    if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                 \
    count();                                                                                       \
    return real arguments;                                                                         \
  }
COUNTED(act, int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *x), (t, a, f, x))
COUNTED(act, int, pthread_kill, (pthread_t t, int s), (t, s))
COUNTED(act, int, pthread_cancel, (pthread_t t), (t))
COUNTED(act, int, pthread_rwlock_unlock, (pthread_rwlock_t * l), (l))
COUNTED(act, int, sem_post, (sem_t * s), (s))
COUNTED(message, pid_t, fork, (void), ())
COUNTED(message, int, execve, (const char *p, char *const a[], char *const e[]), (p, a, e))
COUNTED(message, int, execv, (const char *p, char *const a[]), (p, a))
COUNTED(message, int, execvp, (const char *p, char *const a[]), (p, a))
COUNTED(message, int, kill, (pid_t p, int s), (p, s))
COUNTED(message, int, killpg, (pid_t p, int s), (p, s))
COUNTED(message, int, connect, (int f, const struct sockaddr *a, socklen_t l), (f, a, l))
COUNTED(message, int, shutdown, (int f, int how), (f, how))
COUNTED(message, int, close, (int f), (f))
COUNTED(message, ssize_t, send, (int f, const void *b, size_t n, int g), (f, b, n, g))
COUNTED(message, ssize_t, sendto,
        (int f, const void *b, size_t n, int g, const struct sockaddr *a, socklen_t l), (f, b, n, g, a, l))
COUNTED(message, ssize_t, sendmsg, (int f, const struct msghdr *m, int g), (f, m, g))
COUNTED(message, ssize_t, write, (int f, const void *b, size_t n), (f, b, n))
COUNTED(message, ssize_t, writev, (int f, const struct iovec *v, int n), (f, v, n))
/* Reading makes room for a writer. */
COUNTED(message, ssize_t, recv, (int f, void *b, size_t n, int g), (f, b, n, g))
COUNTED(message, ssize_t, recvfrom,
        (int f, void *b, size_t n, int g, struct sockaddr *a, socklen_t *l), (f, b, n, g, a, l))
COUNTED(message, ssize_t, recvmsg, (int f, struct msghdr *m, int g), (f, m, g))
COUNTED(message, ssize_t, read, (int f, void *b, size_t n), (f, b, n))
COUNTED(message, ssize_t, readv, (int f, const struct iovec *v, int n), (f, v, n))

int pthread_mutex_unlock(pthread_mutex_t *m) {
  static int (*real)(pthread_mutex_t *);
  if (!real) real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
  if (page && m->__data.__lock != 1) act(); /* 2: somebody waits for it */
  return real(m);
}

/* ---- sockets: of this machine alone, and no small message waits in the kernel ---- */

int socket(int domain, int type, int protocol) {
  int f = syscall(SYS_socket, domain, type, protocol), on = 1;
  if (page && f >= 0 && domain == AF_INET && (type & 15) == SOCK_STREAM)
    setsockopt(f, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return f;
}
/* Whoever listens does so at the address of the run ($PTASKMODEL_ADDRESS), which is one of the loopback. */
int bind(int f, const struct sockaddr *a, socklen_t n) {
  struct sockaddr_in here;
  const char *address = page ? getenv("PTASKMODEL_ADDRESS") : NULL;
  if (address && a->sa_family == AF_INET && n >= sizeof here) {
    memcpy(&here, a, sizeof here);
    if (here.sin_port && inet_pton(AF_INET, address, &here.sin_addr) == 1)
      a = (struct sockaddr *)&here, n = sizeof here;
  }
  return syscall(SYS_bind, f, a, n);
}

/* ---- users of a workload whom this machine does not know: in a file like /etc/passwd ($PTASKMODEL_USERS) ---- */

static int find_user(const char *name, uid_t uid, struct passwd *p, char *room, size_t size) {
  const char *path = getenv("PTASKMODEL_USERS");
  FILE *f = path ? fopen(path, "re") : NULL;
  struct passwd *found = NULL;
  if (!f) return 0;
  while (!fgetpwent_r(f, p, room, size, &found) && found)
    if (name ? !strcmp(found->pw_name, name) : found->pw_uid == uid) break;
    else found = NULL;
  fclose(f);
  return found != NULL;
}

int getpwnam_r(const char *name, struct passwd *p, char *room, size_t size, struct passwd **out) {
  static int (*real)(const char *, struct passwd *, char *, size_t, struct passwd **);
  if (!real) real = (int (*)(const char *, struct passwd *, char *, size_t, struct passwd **))dlsym(RTLD_NEXT, "getpwnam_r");
  if (find_user(name, 0, p, room, size)) return *out = p, 0;
  return real(name, p, room, size, out);
}
int getpwuid_r(uid_t uid, struct passwd *p, char *room, size_t size, struct passwd **out) {
  static int (*real)(uid_t, struct passwd *, char *, size_t, struct passwd **);
  if (!real) real = (int (*)(uid_t, struct passwd *, char *, size_t, struct passwd **))dlsym(RTLD_NEXT, "getpwuid_r");
  if (find_user(NULL, uid, p, room, size)) return *out = p, 0;
  return real(uid, p, room, size, out);
}
