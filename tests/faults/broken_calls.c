/* Makes system calls on files of one folder fail, in whatever process it is preloaded into.

   BREAK_UNDER  the folder
   BREAK_CALL   create (an open for a new file), write, fsync, link or rename
   BREAK_HOW    an errno as a number: the call does nothing and fails with it.
                "late ERRNO": the call is carried out, and fails all the same, as where a file server's reply is lost.
                "short": a write takes half of its bytes, as where a signal comes.
   BREAK_FIRST  the first such call of each process that is broken, from 1
   BREAK_TIMES  how many in a row
   BREAK_LOG    a file outside of the folder that gets a line for each broken call */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int calls;

static int below(const char *path) {
    const char *folder = getenv("BREAK_UNDER");
    return folder && strncmp(path, folder, strlen(folder)) == 0;
}

static int descriptor_below(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* Whether this call is one of those that break. */
static int struck(const char *call) {
    const char *wanted = getenv("BREAK_CALL"), *log = getenv("BREAK_LOG");
    if (!wanted || strcmp(wanted, call)) return 0;
    int number = ++calls, first = atoi(getenv("BREAK_FIRST"));
    if (number < first || number >= first + atoi(getenv("BREAK_TIMES"))) return 0;
    int file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file >= 0) {
        dprintf(file, "%s %d\n", call, number);
        close(file);
    }
    return 1;
}

static int late(void) { return strncmp(getenv("BREAK_HOW"), "late", 4) == 0; }

static int fails(void) {
    const char *how = getenv("BREAK_HOW");
    errno = atoi(late() ? how + 4 : how);
    return -1;
}

#define REAL(type, name, ...) type (*real)(__VA_ARGS__) = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int creates(const char *path, int flags) { return (flags & O_CREAT) && below(path) && struck("create"); }

#define OPEN(name)                                                 \
    int name(const char *path, int flags, ...) {                   \
        REAL(int, #name, const char *, int, ...);                  \
        va_list rest;                                              \
        va_start(rest, flags);                                     \
        int mode = va_arg(rest, int);                              \
        va_end(rest);                                              \
        return creates(path, flags) ? fails() : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int descriptor, const void *data, size_t count) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!getenv("BREAK_CALL") || strcmp(getenv("BREAK_CALL"), "write") || !descriptor_below(descriptor) || !struck("write"))
        return real(descriptor, data, count);
    if (strcmp(getenv("BREAK_HOW"), "short") == 0) return real(descriptor, data, count > 1 ? count / 2 : count);
    if (late()) real(descriptor, data, count);
    return fails();
}

int fsync(int descriptor) {
    REAL(int, "fsync", int);
    if (!descriptor_below(descriptor) || !struck("fsync")) return real(descriptor);
    if (late()) real(descriptor);
    return fails();
}

int link(const char *old, const char *new) {
    REAL(int, "link", const char *, const char *);
    if (!below(new) || !struck("link")) return real(old, new);
    if (late()) real(old, new);
    return fails();
}

int linkat(int old_folder, const char *old, int new_folder, const char *new, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    if (!below(new) || !struck("link")) return real(old_folder, old, new_folder, new, flags);
    if (late()) real(old_folder, old, new_folder, new, flags);
    return fails();
}

int rename(const char *old, const char *new) {
    REAL(int, "rename", const char *, const char *);
    if (!below(new) || !struck("rename")) return real(old, new);
    if (late()) real(old, new);
    return fails();
}
