/* A disk that does wrong, below programs that write and read files of `.rigproof`.
 *
 * Preloaded into rigproof and all that it starts. RIGPROOF_WRONG_DISK holds "KIND NUMBER [FILE]":
 *
 *   rest N     a write that covers byte N of a file changes its lowest bit
 *   flight N   the first read in a program that covers byte N of a file has its lowest bit changed
 *   lost N     the MiB at byte N is zeros once the page cache of a file is dropped
 *   pace N     at most N MB/s
 *   EIO N, ENODEV N, ENOSPC N, EROFS N
 *              every operation fails so after N bytes of a program; writes alone for ENOSPC and
 *              EROFS. FILE is made then, and where it is there the first operation fails as well.
 *
 * What is on the disk is what a real one would hold: nothing here remembers data.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* libaio.h, which is not installed where its library is; the layout is that of linux/aio_abi.h. */
struct iocb {
    uint64_t data;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint32_t key, flags;
#else
    uint32_t flags, key;
#endif
    uint16_t opcode;
    int16_t priority;
    uint32_t file;
    uint64_t buffer;
    uint64_t bytes;
    int64_t offset;
    uint64_t reserved;
    uint32_t more_flags, event_file;
};
struct io_event {
    uint64_t data;
    struct iocb *of;
    int64_t result;
    int64_t second;
};
enum { AIO_READ = 0, AIO_WRITE = 1, MIB = 1 << 20, WAITING = 4096 };

enum kind { NONE, REST, FLIGHT, LOST, PACE, FAILS };
static struct {
    enum kind kind;
    int error;
    int64_t number;
    char file[4096];
} wrong;
static struct {
    struct iocb *of;
    int error;
} failing[WAITING];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t moved;
static int changed, gone;

__attribute__((constructor)) static void begin(void)
{
    static const struct { const char *name; enum kind kind; int error; } kinds[] = {
        {"rest", REST, 0}, {"flight", FLIGHT, 0}, {"lost", LOST, 0}, {"pace", PACE, 0},
        {"EIO", FAILS, EIO}, {"ENODEV", FAILS, ENODEV}, {"ENOSPC", FAILS, ENOSPC},
        {"EROFS", FAILS, EROFS},
    };
    const char *said = getenv("RIGPROOF_WRONG_DISK");
    char name[16];
    long long number;
    if (said == NULL)
        return;
    if (sscanf(said, "%15s %lld %4095[^\n]", name, &number, wrong.file) < 2) {
        fprintf(stderr, "wrong_disk: %s is no fault\n", said);
        abort();
    }
    wrong.number = number;
    for (size_t one = 0; one < sizeof kinds / sizeof *kinds; one++)
        if (strcmp(kinds[one].name, name) == 0) {
            wrong.kind = kinds[one].kind;
            wrong.error = kinds[one].error;
            return;
        }
    fprintf(stderr, "wrong_disk: %s is no kind\n", name);
    abort();
}

static void *next_of(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        fprintf(stderr, "wrong_disk: there is no %s\n", name);
        abort();
    }
    return found;
}

/* Whether it is a file of rigproof's on the disk; errno stays. */
static int is_ours(int file)
{
    char link[64], path[4096];
    int kept = errno;
    if (wrong.kind == NONE)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    errno = kept;
    if (size < 0)
        return 0;
    path[size] = 0;
    return strstr(path, "/.rigproof/run-") != NULL || strstr(path, "/.rigproof/kept/sealed") != NULL;
}

static int covers(int64_t offset, int64_t bytes)
{
    return offset <= wrong.number && wrong.number < offset + bytes;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Wait until a disk of this pace would have moved these bytes too. */
static void pace(int64_t bytes)
{
    static int64_t free_ns; /* when the disk has done all that was asked before */
    if (wrong.kind != PACE || bytes <= 0)
        return;
    pthread_mutex_lock(&lock);
    int64_t now = now_ns(), began = free_ns > now - 100000000 ? free_ns : now;
    int64_t until = free_ns = began + bytes * 1000 / wrong.number; /* MB/s */
    pthread_mutex_unlock(&lock);
    struct timespec due = {until / 1000000000, until % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
        ;
}

/* The error with which an operation of so many bytes fails, 0 where it does not. */
static int fails(int64_t bytes, int writes)
{
    int kept = errno, failed = 0;
    if (wrong.kind != FAILS || (!writes && (wrong.error == ENOSPC || wrong.error == EROFS)))
        return 0;
    pthread_mutex_lock(&lock);
    moved += bytes;
    if (!gone && (moved > wrong.number || (wrong.file[0] && access(wrong.file, F_OK) == 0))) {
        gone = 1;
        int file = wrong.file[0] ? open(wrong.file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
        if (file >= 0)
            close(file);
    }
    failed = gone ? wrong.error : 0;
    pthread_mutex_unlock(&lock);
    errno = kept;
    return failed;
}

/* Change the bit of a buffer that was read at this place, once in a program. */
static void in_flight(char *buffer, int64_t offset, int64_t bytes)
{
    if (wrong.kind != FLIGHT || !covers(offset, bytes))
        return;
    pthread_mutex_lock(&lock);
    if (!changed) {
        changed = 1;
        buffer[wrong.number - offset] ^= 1;
    }
    pthread_mutex_unlock(&lock);
}

/* --- libaio, by which fio works --- */

int io_submit(void *context, long count, struct iocb **wanted)
{
    static int (*next)(void *, long, struct iocb **);
    if (next == NULL)
        next = next_of("io_submit");
    for (long one = 0; one < count; one++) {
        struct iocb *this = wanted[one];
        int writes = this->opcode == AIO_WRITE;
        if ((!writes && this->opcode != AIO_READ) || !is_ours((int)this->file))
            continue;
        if (writes && wrong.kind == REST && covers(this->offset, (int64_t)this->bytes))
            ((char *)(uintptr_t)this->buffer)[wrong.number - this->offset] ^= 1;
        int error = fails((int64_t)this->bytes, writes);
        if (error == 0)
            continue;
        this->opcode = AIO_READ; /* nothing reaches the disk */
        pthread_mutex_lock(&lock);
        for (int place = 0; place < WAITING; place++)
            if (failing[place].of == NULL) {
                failing[place].of = this;
                failing[place].error = error;
                break;
            }
        pthread_mutex_unlock(&lock);
    }
    return next(context, count, wanted);
}

int io_getevents(void *context, long least, long most, struct io_event *events,
                 struct timespec *timeout)
{
    static int (*next)(void *, long, long, struct io_event *, struct timespec *);
    if (next == NULL)
        next = next_of("io_getevents");
    int found = next(context, least, most, events, timeout);
    for (int one = 0; one < found; one++) {
        struct iocb *of = events[one].of;
        if (!is_ours((int)of->file))
            continue;
        if (of->opcode == AIO_READ && events[one].result > 0)
            in_flight((char *)(uintptr_t)of->buffer, of->offset, events[one].result);
        pace(events[one].result);
        pthread_mutex_lock(&lock);
        for (int place = 0; place < WAITING; place++)
            if (failing[place].of == of) {
                events[one].result = -failing[place].error;
                failing[place].of = NULL;
                break;
            }
        pthread_mutex_unlock(&lock);
    }
    return found;
}

/* --- what our own loads call --- */

ssize_t pwrite64(int file, const void *buffer, size_t bytes, off64_t offset)
{
    static ssize_t (*next)(int, const void *, size_t, off64_t);
    if (next == NULL)
        next = next_of("pwrite64");
    if (!is_ours(file))
        return next(file, buffer, bytes, offset);
    int error = fails((int64_t)bytes, 1);
    if (error != 0) {
        errno = error;
        return -1;
    }
    pace((int64_t)bytes);
    if (wrong.kind != REST || !covers(offset, (int64_t)bytes))
        return next(file, buffer, bytes, offset);
    char *copy = malloc(bytes);
    if (copy == NULL)
        abort();
    memcpy(copy, buffer, bytes);
    copy[wrong.number - offset] ^= 1;
    ssize_t done = next(file, copy, bytes, offset);
    free(copy);
    return done;
}

static ssize_t after_read(int file, const struct iovec *parts, ssize_t done, off64_t offset)
{
    if (done <= 0 || !is_ours(file))
        return done;
    pace(done);
    for (int64_t at = 0; at < done; at += (int64_t)parts++->iov_len)
        in_flight(parts->iov_base, offset + at, (int64_t)parts->iov_len);
    return done;
}

static int read_fails(int file, const struct iovec *parts, int count)
{
    int64_t bytes = 0;
    for (int one = 0; one < count; one++)
        bytes += (int64_t)parts[one].iov_len;
    int error = is_ours(file) ? fails(bytes, 0) : 0;
    if (error != 0)
        errno = error;
    return error;
}

ssize_t preadv64(int file, const struct iovec *parts, int count, off64_t offset)
{
    static ssize_t (*next)(int, const struct iovec *, int, off64_t);
    if (next == NULL)
        next = next_of("preadv64");
    if (read_fails(file, parts, count) != 0)
        return -1;
    return after_read(file, parts, next(file, parts, count, offset), offset);
}

ssize_t preadv64v2(int file, const struct iovec *parts, int count, off64_t offset, int flags)
{
    static ssize_t (*next)(int, const struct iovec *, int, off64_t, int);
    if (next == NULL)
        next = next_of("preadv64v2");
    if (read_fails(file, parts, count) != 0)
        return -1;
    return after_read(file, parts, next(file, parts, count, offset, flags), offset);
}

/* --- what makes data lasting, and forgets them --- */

static int flush(int file, const char *name)
{
    int (*next)(int) = next_of(name);
    int error = is_ours(file) && gone ? wrong.error : 0;
    if (error != 0 && error != ENOSPC) {
        errno = error;
        return -1;
    }
    return next(file);
}

int fsync(int file)
{
    return flush(file, "fsync");
}

int fdatasync(int file)
{
    return flush(file, "fdatasync");
}

int posix_fadvise64(int file, off64_t offset, off64_t bytes, int advice)
{
    static int (*next)(int, off64_t, off64_t, int);
    if (next == NULL)
        next = next_of("posix_fadvise64");
    if (wrong.kind == LOST && advice == POSIX_FADV_DONTNEED && is_ours(file)) {
        static const char zeros[MIB];
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        int own = open(link, O_WRONLY | O_CLOEXEC); /* without O_DIRECT, and to be written */
        off64_t end = own < 0 ? 0 : lseek(own, 0, SEEK_END);
        ssize_t (*write_at)(int, const void *, size_t, off64_t) = next_of("pwrite64");
        if (end >= wrong.number + MIB && write_at(own, zeros, MIB, wrong.number) != MIB)
            abort();
        if (own >= 0) {
            int (*sync)(int) = next_of("fdatasync");
            sync(own);
            close(own);
        }
    }
    return next(file, offset, bytes, advice);
}
