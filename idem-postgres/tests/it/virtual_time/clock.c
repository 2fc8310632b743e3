/* Gives a process a clock that a test moves: the wall clock is the number of microseconds since
 * 1970 in the file $IDEM_TEST_CLOCK, which is mapped, or the real one while that is zero. The
 * monotonic clock is left alone. For LD_PRELOAD; allocates nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *micros;

__attribute__((constructor)) static void map_clock(void) {
    const char *path = getenv("IDEM_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0)
        return;
    void *page = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED)
        micros = page;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int64_t told = micros ? *micros : 0;
    if (told == 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return (int)syscall(SYS_clock_gettime, clock, at);
    at->tv_sec = told / 1000000;
    at->tv_nsec = told % 1000000 * 1000;
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
