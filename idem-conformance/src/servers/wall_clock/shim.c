/* Gives a process a wall clock that a test moves. For LD_PRELOAD.
 *
 * What the calls below return is decided by two 64-bit numbers of microseconds in the file
 * $IDEM_TEST_CLOCK, which is mapped: the time at which the clock stands (0: it goes), and how far
 * it is ahead while it goes. The monotonic clock is left alone. Allocates nothing, for programs
 * that bring an allocator of their own. */
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

static const struct clock right;
static const struct clock *told = &right;

__attribute__((constructor)) static void map_clock(void) {
    const char *path = getenv("IDEM_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0)
        _exit(71); /* A test must not go on by the real time. */
    void *page = mmap(0, sizeof right, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        _exit(71);
    told = page;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return failed;
    int64_t stands_at = told->stands_at;
    int64_t now = stands_at ? stands_at
                            : at->tv_sec * INT64_C(1000000) + at->tv_nsec / 1000 + told->ahead;
    at->tv_sec = now / 1000000;
    at->tv_nsec = now % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
