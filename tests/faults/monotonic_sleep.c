/* Preloaded before libfaketime: sleeps by the monotonic clock go to the kernel. libfaketime 0.9.10 shifts their time although
   FAKETIME_DONT_FAKE_MONOTONIC is set (https://github.com/wolfcw/libfaketime/issues/426), and Python's `time.sleep` fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *left) {
    if (clock == CLOCK_MONOTONIC) return syscall(SYS_clock_nanosleep, clock, flags, request, left) ? errno : 0;
    int (*next)(clockid_t, int, const struct timespec *, struct timespec *) = dlsym(RTLD_NEXT, "clock_nanosleep");
    return next(clock, flags, request, left);
}
