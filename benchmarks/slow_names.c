/* A name server that hangs, for one process: `cc -shared -fPIC -o slow_names.so slow_names.c`, then LD_PRELOAD.
 *
 * SLOW_NAMES is a file with seconds (int64), of which a change is seen at once. SLOW_NAME is known to be 127.0.0.1 after so many seconds; if they
 * are negative it fails after them, as where no name server answers (EAI_AGAIN). Python, librdkafka and Java all ask by getaddrinfo.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int64_t none = 0;
static const volatile int64_t *takes_s = &none;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("SLOW_NAMES");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) takes_s = found;
    if (file >= 0) close(file);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    static int (*ask)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (!ask) ask = dlsym(RTLD_NEXT, "getaddrinfo");
    const char *slow = getenv("SLOW_NAME");
    if (!node || !slow || strcmp(node, slow)) return ask(node, service, hints, found);
    int64_t seconds = *takes_s;
    sleep(seconds < 0 ? -seconds : seconds);
    return seconds < 0 ? EAI_AGAIN : ask("127.0.0.1", service, hints, found);
}
