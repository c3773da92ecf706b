/* A wall clock that can be set for one process: `cc -shared -fPIC -o wall_clock.so wall_clock.c`, then LD_PRELOAD.
 *
 * WALL_CLOCK_AHEAD is a file with the seconds by which the clock is ahead (int64); a change is seen at once. The monotonic clock is left as it
 * is, as it does not jump in life either. Not libfaketime 0.9.10, which refuses Python's sleeps while the monotonic clock is not faked, and
 * lets a Java broker hang.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const int64_t none = 0;
static const volatile int64_t *ahead_s = &none;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("WALL_CLOCK_AHEAD");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) ahead_s = found;
    if (file >= 0) close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *ahead_s;
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    int failed = syscall(SYS_gettimeofday, now, zone);
    if (!failed) now->tv_sec += *ahead_s;
    return failed;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}

/* An end on the wall clock, as the kernel has it. One on the monotonic clock is a time since the machine's start, so far smaller. */
static struct timespec of_kernel(const struct timespec *end) {
    struct timespec found = *end;
    if (found.tv_sec > 1000000000) found.tv_sec -= *ahead_s;
    return found;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *end) {
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!wait) wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    struct timespec until = of_kernel(end);
    return wait(condition, mutex, &until);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *end) {
    static int (*wait)(sem_t *, const struct timespec *);
    if (!wait) wait = dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec until = of_kernel(end);
    return wait(semaphore, &until);
}

/* C11's own, which librdkafka waits with. */
int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *end) {
    static int (*wait)(cnd_t *, mtx_t *, const struct timespec *);
    if (!wait) wait = dlsym(RTLD_NEXT, "cnd_timedwait");
    struct timespec until = of_kernel(end);
    return wait(condition, mutex, &until);
}
