/* The page that the driver of the virtual clock shares with every process that lives under it. */
#ifndef PTASKMODEL_CLOCK_H
#define PTASKMODEL_CLOCK_H
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>

#define SLOTS 16384
#define NEVER INT64_MAX
#define NS 1000000000LL
/* The monotonic clocks begin here, and what is smaller than the other is taken for one of theirs. */
#define MONOTONIC_AT_FIRST (1000 * NS)
#define MONOTONIC_BELOW (500000000 * NS)
/* Ends a poll whose date has come; blocked everywhere else. */
#define WAKE_SIGNAL (SIGRTMAX - 3)

enum { FREE, AWAKE, ASLEEP };
enum { ON_FUTEX, IN_POLL };
/* What ended a wait on a futex. */
enum { WAITING, DATE_REACHED, SIGNALLED };

/* One for each thread that ever waited. */
struct slot {
  _Atomic int state;
  _Atomic int pid, tid;
  _Atomic int kind;
  _Atomic uint32_t word;
  uint32_t unused;
  _Atomic uint64_t order; /* of lying down, over all processes */
  _Atomic uint64_t acts;  /* what this thread did that may wake another one */
  _Atomic uint64_t round; /* in which it lay down */
  char pad[16];
};

struct page {
  _Atomic int64_t now; /* ns since 1970 */
  int64_t first;       /* where the clock began */
  int64_t slack;       /* ns by which every wait is longer */
  _Atomic int listens; /* the driver waits for the bell, which whoever lies down then rings */
  _Atomic uint32_t bell;
  _Atomic int used;    /* slots below this one are, or were */
  _Atomic uint64_t order;
  _Atomic uint64_t round; /* from one moment at which all is quiet to the next */
  _Atomic uint64_t messages; /* acts that may wake a thread of another process */
  _Atomic int64_t wakes[SLOTS]; /* date, or NEVER */
  struct slot slots[SLOTS];
};
#endif
