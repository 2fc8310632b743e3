// Virtual time for a server of a test, by LD_PRELOAD.
//
// Stands in front of every call that reads the wall clock. What they return is decided by two
// 64-bit integers in the file $IDEM_CLOCK, in microseconds, which a test changes while the server
// runs: the time at which the clock stands still (0: it goes), and how far it is ahead otherwise.
// The monotonic clock, by which a server measures, is left alone. No malloc: safe under jemalloc.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct clock { volatile int64_t stands_at, ahead; };

static struct clock real;
static struct clock *told = &real;

__attribute__((constructor)) static void init(void) {
    const char *path = getenv("IDEM_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) _exit(71); // A test must not go on with the real time.
    void *page = mmap(0, sizeof real, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) _exit(71);
    told = page;
    close(file);
}

int clock_gettime(clockid_t which, struct timespec *out) {
    int failed = syscall(SYS_clock_gettime, which, out);
    if (failed || (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)) return failed;
    int64_t now = out->tv_sec * 1000000LL + out->tv_nsec / 1000 + told->ahead;
    if (told->stands_at) now = told->stands_at;
    out->tv_sec = now / 1000000;
    out->tv_nsec = now % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *out, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
