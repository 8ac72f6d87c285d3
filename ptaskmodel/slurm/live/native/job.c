/* A job of a simulated machine: it does nothing until it is told to end.
 *
 *   #!/.../job NAME      as the first line of a script; NAME: an abstract Unix socket
 *
 * Says which job it is; hears "s" (it ignores SIGTERM), "e" and a byte (it ends with that code).  It ends
 * when the other side is gone. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *given(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

int main(int count, char **words) {
  struct sockaddr_un place = {.sun_family = AF_UNIX};
  size_t n = count > 1 ? strlen(words[1]) : 0;
  if (!n || n + 1 > sizeof place.sun_path) return 125;
  memcpy(place.sun_path + 1, words[1], n);
  int line = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (line < 0 || connect(line, (struct sockaddr *)&place, offsetof(struct sockaddr_un, sun_path) + 1 + n)) return 125;
  char *hello;
  int size = asprintf(&hello, "%s %s", given("SLURM_JOB_ID"), given("SLURM_RESTART_COUNT"));
  if (size < 0 || send(line, hello, size, MSG_NOSIGNAL) < 0) return 125;
  for (;;) {
    unsigned char said[2];
    ssize_t got = recv(line, said, sizeof said, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 1 && said[0] == 's') signal(SIGTERM, SIG_IGN);
    else return got == 2 && said[0] == 'e' ? said[1] : 1;
  }
}
