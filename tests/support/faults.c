/* Makes the n-th call of a seam fail, for calls that concern files in one folder. Loaded with LD_PRELOAD (fault_runner.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN = 1, WRITE, FSYNC, RENAME, MMAP };

static int armed_seam, failure, lasts;
static long failing_call, calls;
static char folder[PATH_MAX];

void arm(int seam, long n, int error, int until_disarmed, const char *path)
{
    calls = 0, failing_call = n, failure = error, lasts = until_disarmed;
    strncpy(folder, path, sizeof folder - 1);
    armed_seam = seam;
}

long disarm(void)
{
    armed_seam = 0;
    return calls;
}

static int fails(int seam, int fd, const char *path)
{
    char target[PATH_MAX], link[64];
    if (armed_seam != seam)
        return 0;
    if (path == NULL) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        if (length < 0)
            return 0;
        target[length] = 0;
        path = target;
    }
    if (strncmp(path, folder, strlen(folder)) != 0)
        return 0;
    long call = __sync_add_and_fetch(&calls, 1);
    if (call != failing_call && !(lasts && call > failing_call))
        return 0;
    errno = failure;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPENS(name)                                                                                                    \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        int mode = va_arg(rest, int);                                                                                  \
        va_end(rest);                                                                                                  \
        return fails(OPEN, -1, path) ? -1 : REAL(name)(path, flags, mode);                                             \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                                                                 \
    int name(int at, const char *path, int flags, ...)                                                                 \
    {                                                                                                                  \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        int mode = va_arg(rest, int);                                                                                  \
        va_end(rest);                                                                                                  \
        return fails(OPEN, -1, path) ? -1 : REAL(name)(at, path, flags, mode);                                         \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t write(int fd, const void *data, size_t size)
{
    return fails(WRITE, fd, NULL) ? -1 : REAL(write)(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    return fails(WRITE, fd, NULL) ? -1 : REAL(pwrite)(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    return fails(WRITE, fd, NULL) ? -1 : REAL(pwrite64)(fd, data, size, at);
}

int fsync(int fd)
{
    return fails(FSYNC, fd, NULL) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    return fails(FSYNC, fd, NULL) ? -1 : REAL(fdatasync)(fd);
}

int rename(const char *from, const char *to)
{
    return fails(RENAME, -1, to) ? -1 : REAL(rename)(from, to);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return fd >= 0 && fails(MMAP, fd, NULL) ? MAP_FAILED : REAL(mmap)(at, size, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return fd >= 0 && fails(MMAP, fd, NULL) ? MAP_FAILED : REAL(mmap64)(at, size, protection, flags, fd, offset);
}
