/*
 * To be preloaded into a program (LD_PRELOAD): lets one of its calls to the system fail, do half of its work, or be the one at
 * which the program is killed or stopped. Calls count when they are about something below a root, and are told apart by a label:
 * `CALL PATH#N`, where PATH is relative to the root and without what differs from run to run, and N counts calls of that name.
 *
 * FAULT_ROOT is the root. FAULT_LOG names a file that takes the labels of all calls; FAULT_AT is the label of the call to hit, and
 * FAULT_KIND what happens there, a word of KINDS; a `+` behind it makes all later calls of the kind fail, too. A program arms the
 * shim itself by opening `/fault/arm\nROOT\nKIND\nLABEL` or `/fault/log\nROOT\nLOG`, and disarms it with `/fault/off`, which fails
 * with EEXIST if the call was hit. Programs that this one starts are not affected.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PATH_SIZE (2 * PATH_MAX)
#define SLOTS 16384
/* Seconds that pass for a program while it is stopped. */
#define STOPPED 600

enum kind { NONE, FAIL, SHORT, KILL_BEFORE, KILL_MIDDLE, KILL_AFTER, STOP };

static const struct {
  const char *word;
  enum kind kind;
  int error;
} KINDS[] = {
  {"ENOSPC", FAIL, ENOSPC},   {"EIO", FAIL, EIO},       {"EROFS", FAIL, EROFS},         {"EMFILE", FAIL, EMFILE},
  {"EAGAIN", FAIL, EAGAIN},   {"short", SHORT, 0},      {"kill-before", KILL_BEFORE, 0}, {"kill-middle", KILL_MIDDLE, 0},
  {"kill-after", KILL_AFTER, 0}, {"stop", STOP, 0},
};

/* What a call does, for faults that last. */
enum effect { LOOKS, OPENS, GROWS, CHANGES };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int armed;
static char root[PATH_SIZE], wanted[PATH_SIZE];
static enum kind kind;
static int fault_error, lasts, hit, log_file = -1;
static volatile int jumped;
static struct {
  char *name;
  int count;
} seen[SLOTS];

#define REAL(result, name, ...) \
  static result (*real_##name)(__VA_ARGS__); \
  if (real_##name == NULL) real_##name = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

static void set_kind(const char *text) {
  size_t length = strlen(text);
  lasts = length > 0 && text[length - 1] == '+';
  if (lasts) length -= 1;
  kind = NONE;
  for (size_t at = 0; at < sizeof KINDS / sizeof *KINDS; at += 1) {
    if (strlen(KINDS[at].word) == length && strncmp(KINDS[at].word, text, length) == 0) {
      kind = KINDS[at].kind;
      fault_error = KINDS[at].error;
    }
  }
}

static void arm(const char *folder, const char *what, const char *label, const char *log) {
  pthread_mutex_lock(&lock);
  for (size_t at = 0; at < SLOTS; at += 1) {
    free(seen[at].name);
    seen[at].name = NULL;
    seen[at].count = 0;
  }
  snprintf(root, sizeof root, "%s", folder);
  snprintf(wanted, sizeof wanted, "%s", label);
  set_kind(what);
  hit = 0;
  if (log_file >= 0) close(log_file);
  log_file = *log == '\0' ? -1 : (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  armed = 1;
  pthread_mutex_unlock(&lock);
}

static int disarm(void) {
  pthread_mutex_lock(&lock);
  int was = hit;
  armed = 0;
  hit = 0;
  pthread_mutex_unlock(&lock);
  return was;
}

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("FAULT_ROOT"), *what = getenv("FAULT_KIND"), *label = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
  if (folder != NULL) arm(folder, what ? what : "", label ? label : "", log ? log : "");
  unsetenv("LD_PRELOAD");
  unsetenv("FAULT_ROOT");
  unsetenv("FAULT_KIND");
  unsetenv("FAULT_AT");
  unsetenv("FAULT_LOG");
}

static int is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/* Copies a path without owners of partial files, ids of runs, numbers of nameless files and random words. */
static void normalize(const char *from, char *to, size_t size) {
  size_t out = 0;
  while (*from != '\0' && out + 2 < size) {
    size_t hex = 0;
    int digits = 1, letters = 0;
    int is_start = out == 0 || !is_hex(from[-1]);
    while (is_start && is_hex(from[hex])) {
      if (from[hex] > '9') digits = 0, letters = 1;
      hex += 1;
    }
    if (strncmp(from, "curlew-partial-", 15) == 0 || strncmp(from, "curlew-scripts-", 15) == 0) {
      memcpy(to + out, from, 15);
      out += 15;
      to[out++] = '*';
      from += strcspn(from, "/");
    } else if (is_start && strlen(from) >= 16 && digits == 1 && hex == 8 && from[8] == 'T' && from[15] == 'Z') {
      memcpy(to + out, "RUN", 3);
      out += 3;
      from += 16 + (from[16] == '-' ? 5 : 0);
    } else if (*from == '#') {
      to[out++] = '#';
      to[out++] = '*';
      from += 1 + strspn(from + 1, "0123456789");
    } else if ((hex >= 8 && hex <= 16 && (letters || hex > 8)) || (hex > 16 && digits)) {
      to[out++] = '*';
      from += hex;
    } else if (hex > 0 && out + hex + 1 < size) {
      memcpy(to + out, from, hex);
      out += hex;
      from += hex;
    } else {
      to[out++] = *from++;
    }
  }
  to[out] = '\0';
}

/* Number of this call among those of its name. */
static int count(const char *name) {
  size_t hash = 5381;
  for (const char *c = name; *c != '\0'; c += 1) hash = hash * 33 + (unsigned char)*c;
  for (size_t at = hash % SLOTS;; at = (at + 1) % SLOTS) {
    if (seen[at].name == NULL) seen[at].name = strdup(name);
    if (strcmp(seen[at].name, name) == 0) return ++seen[at].count;
  }
}

static int is_lasting(enum effect effect) {
  switch (fault_error) {
    case ENOSPC: return effect == GROWS;
    case EROFS: return effect == GROWS || effect == CHANGES;
    case EMFILE: return effect == OPENS;
    default: return 1;
  }
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static void stop(void) {
  jumped = 1;
  kill(getpid(), SIGSTOP);
}

/*
 * What happens at a call about `path`, or about the open file `fd`; with neither it is about no file. An error is left in errno.
 * `opens` is for calls that also need a descriptor.
 */
static enum kind meet(const char *call, const char *path, int fd, enum effect effect, int opens) {
  if (!armed) return NONE;
  int before = errno;
  char full[PATH_SIZE], label[2 * PATH_SIZE], name[PATH_SIZE];
  char link[64];
  const char *rest = "";
  size_t length = strlen(root);
  if (fd >= 0) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = syscall(SYS_readlinkat, AT_FDCWD, link, full, sizeof full - 1);
    full[got < 0 ? 0 : got] = '\0';
  } else if (path != NULL && *path != '/') {
    if (getcwd(full, PATH_MAX) == NULL) *full = '\0';
    size_t used = strlen(full);
    snprintf(full + used, sizeof full - used, "/%s", path);
  } else {
    snprintf(full, sizeof full, "%s", path ? path : "");
  }
  errno = before;
  if (fd >= 0 || path != NULL) {
    if (strncmp(full, root, length) != 0 || (full[length] != '/' && full[length] != '\0')) return NONE;
    rest = full + length + (full[length] == '/');
  }
  normalize(rest, name, sizeof name);
  pthread_mutex_lock(&lock);
  snprintf(label, sizeof label, "%s %s", call, *name == '\0' ? "." : name);
  int number = count(label);
  size_t used = strlen(label);
  snprintf(label + used, sizeof label - used, "#%d", number);
  int is_it = strcmp(label, wanted) == 0 && !hit;
  int follows = hit && lasts && kind == FAIL && (is_lasting(effect) || (opens && fault_error == EMFILE));
  if (is_it) hit = 1;
  if (log_file >= 0) {
    label[strlen(label) + 1] = '\0';
    label[strlen(label)] = '\n';
    syscall(SYS_write, log_file, label, strlen(label));
  }
  pthread_mutex_unlock(&lock);
  errno = before;
  if (!is_it && !follows) return NONE;
  if (kind == KILL_BEFORE) die();
  if (kind == STOP) {
    stop();
    return NONE;
  }
  if (kind != FAIL) return kind;
  /* A disk that fills up takes the first bytes. */
  if (is_it && lasts && fault_error == ENOSPC && strcmp(call, "write") == 0) return SHORT;
  errno = fault_error;
  return FAIL;
}

#define MEET(call, path, fd, effect, opens) \
  enum kind met = meet(call, path, fd, effect, opens); \
  if (met == FAIL) return -1

#define END(type, work) \
  do { \
    type result = work; \
    if (met == KILL_AFTER || met == KILL_MIDDLE) die(); \
    return result; \
  } while (0)

/* Control, for programs that arm the shim themselves. */
static int control(const char *path) {
  char text[2 * PATH_SIZE], *words[4] = {"", "", "", ""}, *state = NULL;
  snprintf(text, sizeof text, "%s", path + strlen("/fault/"));
  int at = 0;
  for (char *word = strtok_r(text, "\n", &state); word != NULL && at < 4; word = strtok_r(NULL, "\n", &state)) words[at++] = word;
  if (strcmp(words[0], "arm") == 0) arm(words[1], words[2], words[3], "");
  else if (strcmp(words[0], "log") == 0) arm(words[1], "", "", words[2]);
  errno = strcmp(words[0], "off") == 0 && disarm() ? EEXIST : ENOENT;
  return -1;
}

int open64(const char *path, int flags, ...) {
  REAL(int, open64, const char *, int, ...);
  va_list list;
  va_start(list, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, mode_t) : 0;
  va_end(list);
  if (strncmp(path, "/fault/", 7) == 0) return control(path);
  int creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
  MEET(creates ? "create" : "open", path, -1, creates ? GROWS : (flags & O_ACCMODE) == O_RDONLY ? OPENS : CHANGES, 1);
  END(int, real_open64(path, flags, mode));
}

ssize_t read(int fd, void *data, size_t size) {
  REAL(ssize_t, read, int, void *, size_t);
  MEET("read", NULL, fd, LOOKS, 0);
  END(ssize_t, real_read(fd, data, met == SHORT && size > 1 ? size / 2 : size));
}

ssize_t pread64(int fd, void *data, size_t size, off64_t at) {
  REAL(ssize_t, pread64, int, void *, size_t, off64_t);
  MEET("read", NULL, fd, LOOKS, 0);
  END(ssize_t, real_pread64(fd, data, met == SHORT && size > 1 ? size / 2 : size, at));
}

static size_t part(enum kind met, size_t size) {
  return (met == SHORT || met == KILL_MIDDLE) && size > 1 ? size / 2 : size;
}

ssize_t write(int fd, const void *data, size_t size) {
  REAL(ssize_t, write, int, const void *, size_t);
  MEET("write", NULL, fd, GROWS, 0);
  END(ssize_t, real_write(fd, data, part(met, size)));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
  MEET("write", NULL, fd, GROWS, 0);
  END(ssize_t, real_pwrite64(fd, data, part(met, size), at));
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
  REAL(ssize_t, writev, int, const struct iovec *, int);
  MEET("write", NULL, fd, GROWS, 0);
  struct iovec first = {.iov_base = parts[0].iov_base, .iov_len = part(met, parts[0].iov_len)};
  int whole = met != SHORT && met != KILL_MIDDLE;
  END(ssize_t, real_writev(fd, whole ? parts : &first, whole ? number : 1));
}

ssize_t pwritev64(int fd, const struct iovec *parts, int number, off64_t at) {
  REAL(ssize_t, pwritev64, int, const struct iovec *, int, off64_t);
  MEET("write", NULL, fd, GROWS, 0);
  struct iovec first = {.iov_base = parts[0].iov_base, .iov_len = part(met, parts[0].iov_len)};
  int whole = met != SHORT && met != KILL_MIDDLE;
  END(ssize_t, real_pwritev64(fd, whole ? parts : &first, whole ? number : 1, at));
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
  REAL(ssize_t, sendfile64, int, int, off64_t *, size_t);
  MEET("write", NULL, to, GROWS, 0);
  END(ssize_t, real_sendfile64(to, from, at, part(met, size)));
}

int fsync(int fd) {
  REAL(int, fsync, int);
  MEET("sync", NULL, fd, CHANGES, 0);
  END(int, real_fsync(fd));
}

int fdatasync(int fd) {
  REAL(int, fdatasync, int);
  MEET("sync", NULL, fd, CHANGES, 0);
  END(int, real_fdatasync(fd));
}

int ftruncate64(int fd, off64_t size) {
  REAL(int, ftruncate64, int, off64_t);
  MEET("truncate", NULL, fd, CHANGES, 0);
  END(int, real_ftruncate64(fd, size));
}

int rename(const char *from, const char *to) {
  REAL(int, rename, const char *, const char *);
  MEET("rename", to, -1, CHANGES, 0);
  END(int, real_rename(from, to));
}

int link(const char *from, const char *to) {
  REAL(int, link, const char *, const char *);
  MEET("link", to, -1, GROWS, 0);
  END(int, real_link(from, to));
}

int symlink(const char *from, const char *to) {
  REAL(int, symlink, const char *, const char *);
  MEET("symlink", to, -1, GROWS, 0);
  END(int, real_symlink(from, to));
}

int unlink(const char *path) {
  REAL(int, unlink, const char *);
  MEET("unlink", path, -1, CHANGES, 0);
  END(int, real_unlink(path));
}

int rmdir(const char *path) {
  REAL(int, rmdir, const char *);
  MEET("rmdir", path, -1, CHANGES, 0);
  END(int, real_rmdir(path));
}

int mkdir(const char *path, mode_t mode) {
  REAL(int, mkdir, const char *, mode_t);
  MEET("mkdir", path, -1, GROWS, 0);
  END(int, real_mkdir(path, mode));
}

char *mkdtemp(char *path) {
  REAL(char *, mkdtemp, char *);
  if (meet("mkdir", path, -1, GROWS, 0) == FAIL) return NULL;
  return real_mkdtemp(path);
}

int chmod(const char *path, mode_t mode) {
  REAL(int, chmod, const char *, mode_t);
  MEET("mode", path, -1, CHANGES, 0);
  END(int, real_chmod(path, mode));
}

int fchmod(int fd, mode_t mode) {
  REAL(int, fchmod, int, mode_t);
  MEET("mode", NULL, fd, CHANGES, 0);
  END(int, real_fchmod(fd, mode));
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
  REAL(int, utimensat, int, const char *, const struct timespec *, int);
  MEET("times", path, -1, CHANGES, 0);
  END(int, real_utimensat(folder, path, times, flags));
}

int futimens(int fd, const struct timespec times[2]) {
  REAL(int, futimens, int, const struct timespec *);
  MEET("times", NULL, fd, CHANGES, 0);
  END(int, real_futimens(fd, times));
}

int scandir64(const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
              int (*compare)(const struct dirent64 **, const struct dirent64 **)) {
  REAL(int, scandir64, const char *, struct dirent64 ***, int (*)(const struct dirent64 *),
       int (*)(const struct dirent64 **, const struct dirent64 **));
  MEET("list", path, -1, OPENS, 1);
  END(int, real_scandir64(path, list, filter, compare));
}

DIR *opendir(const char *path) {
  REAL(DIR *, opendir, const char *);
  if (meet("list", path, -1, OPENS, 1) == FAIL) return NULL;
  return real_opendir(path);
}

ssize_t readlink(const char *path, char *data, size_t size) {
  REAL(ssize_t, readlink, const char *, char *, size_t);
  MEET("readlink", path, -1, LOOKS, 0);
  END(ssize_t, real_readlink(path, data, size));
}

int statfs64(const char *path, struct statfs64 *data) {
  REAL(int, statfs64, const char *, struct statfs64 *);
  MEET("statfs", path, -1, LOOKS, 0);
  END(int, real_statfs64(path, data));
}

/* What a program needs to start another: fork, and pipes to it. */
pid_t fork(void) {
  REAL(pid_t, fork, void);
  MEET("fork", NULL, -1, LOOKS, 0);
  return real_fork();
}

int socketpair(int domain, int type, int protocol, int fds[2]) {
  REAL(int, socketpair, int, int, int, int *);
  MEET("pipe", NULL, -1, OPENS, 1);
  return real_socketpair(domain, type, protocol, fds);
}

/* Calls that libuv makes without a function of the C library. */
long syscall(long number, ...) {
  REAL(long, syscall, long, ...);
  va_list list;
  va_start(list, number);
  long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long), d = va_arg(list, long), e = va_arg(list, long),
       f = va_arg(list, long);
  va_end(list);
  if (number == SYS_statx) {
    const char *path = (const char *)b;
    MEET("stat", *path == '\0' ? NULL : path, *path == '\0' ? (int)a : -1, LOOKS, 0);
  } else if (number == SYS_copy_file_range) {
    MEET("write", NULL, (int)c, GROWS, 0);
    END(long, real_syscall(number, a, b, c, d, part(met, (size_t)e), f));
  } else if (number == SYS_close && armed && (fcntl((int)a, F_GETFL) & O_ACCMODE) != O_RDONLY) {
    enum kind met = meet("close", NULL, (int)a, CHANGES, 0);
    long result = real_syscall(number, a);
    if (met == KILL_AFTER) die();
    if (met != FAIL) return result;
    errno = fault_error;
    return -1;
  }
  return real_syscall(number, a, b, c, d, e, f);
}

/* A program that was stopped finds that minutes have passed; the kernel's own clock has not moved. */
int clock_gettime(clockid_t clock, struct timespec *now) {
  REAL(int, clock_gettime, clockid_t, struct timespec *);
  int result = real_clock_gettime(clock, now);
  if (jumped && result == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC_COARSE))
    now->tv_sec += STOPPED;
  return result;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
  REAL(int, pthread_cond_timedwait, pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  struct timespec moved = *until;
  if (jumped && moved.tv_sec > STOPPED) moved.tv_sec -= STOPPED;
  return real_pthread_cond_timedwait(condition, mutex, &moved);
}
