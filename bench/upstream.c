/* A fast fake of an OpenAI chat upstream, so that what a gateway adds can be measured. One epoll thread, no dependencies, Linux, loopback only.
 *
 *   upstream [PORT]        PORT 0 or none: any free one. Prints "port N" on its first line.
 *
 * POST to any path ending in /chat/completions. The model's name says how it behaves, numbers in any order:
 *   fake-l2000-n200-d10    l: milliseconds before the first byte; n: content chunks; d: milliseconds between two chunks
 * "stream": true gives SSE, else one JSON document. Every content chunk holds t=<CLOCK_MONOTONIC ns at sending>; so that the reader can tell how
 * long the relay took, and the first one repeats a q=...; mark found in the request, so that an answer which reaches the wrong caller shows.
 * Usage is in the JSON document, and in the stream's last chunk where the request holds include_usage.
 *
 * GET /stats   {"requests", "done", "aborted", "active", "connections", "input_tokens", "output_tokens"}
 *              done: written whole; aborted: the peer closed before that; tokens: of those done that told their usage.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MAX_FDS 65536
#define INPUT_TOKENS 12

struct buffer {
    char *data;
    size_t used, room;
};

struct connection {
    uint32_t generation; /* a timer of an earlier owner of this descriptor must not fire */
    int open, busy, stream, wants_usage, watches_write;
    int latency_ms, chunks, gap_ms, sent_chunks;
    uint64_t id;
    int64_t next_at;
    char model[160], mark[48];
    struct buffer in, out;
    size_t out_sent;
};

struct timer {
    int64_t at;
    int fd;
    uint32_t generation;
};

static struct connection *connections[MAX_FDS];
static struct timer *heap;
static size_t heap_used, heap_room;
static int poller;
static uint64_t last_id;
static struct {
    uint64_t requests, done, aborted, active, connections, input_tokens, output_tokens;
} stats;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *or_die(void *memory) {
    if (!memory) {
        fputs("upstream: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* ------------------------------------------------------------------ timers: a binary heap by time */

static void timer_add(int64_t at, int fd, uint32_t generation) {
    if (heap_used == heap_room) {
        heap_room = heap_room ? heap_room * 2 : 1024;
        heap = or_die(realloc(heap, heap_room * sizeof *heap));
    }
    size_t place = heap_used++;
    while (place) {
        size_t parent = (place - 1) / 2;
        if (heap[parent].at <= at)
            break;
        heap[place] = heap[parent];
        place = parent;
    }
    heap[place] = (struct timer){at, fd, generation};
}

static struct timer timer_take(void) {
    struct timer first = heap[0], last = heap[--heap_used];
    size_t place = 0;
    for (;;) {
        size_t child = place * 2 + 1;
        if (child >= heap_used)
            break;
        if (child + 1 < heap_used && heap[child + 1].at < heap[child].at)
            child++;
        if (heap[child].at >= last.at)
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = last;
    return first;
}

/* ------------------------------------------------------------------ writing */

static void buffer_room(struct buffer *b, size_t more) {
    if (b->room - b->used >= more)
        return;
    while (b->room - b->used < more)
        b->room = b->room ? b->room * 2 : 4096;
    b->data = or_die(realloc(b->data, b->room));
}

__attribute__((format(printf, 2, 3))) static void say(struct connection *c, const char *format, ...) {
    va_list values;
    buffer_room(&c->out, 1024);
    va_start(values, format);
    int n = vsnprintf(c->out.data + c->out.used, c->out.room - c->out.used, format, values);
    va_end(values);
    if (n > 0 && (size_t)n < c->out.room - c->out.used)
        c->out.used += (size_t)n;
}

static void say_event(struct connection *c, const char *data) { say(c, "%zx\r\ndata: %s\n\n\r\n", strlen(data) + 8, data); }

static void watch(int fd, struct connection *c, int write) {
    if (c->watches_write == write)
        return;
    c->watches_write = write;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | (write ? EPOLLOUT : 0), .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event);
}

static void drop(int fd) {
    struct connection *c = connections[fd];
    if (!c->open)
        return;
    if (c->busy) {
        stats.aborted++;
        stats.active--;
    }
    stats.connections--;
    c->open = c->busy = 0;
    c->generation++;
    close(fd);
}

static int flush_out(int fd) {
    struct connection *c = connections[fd];
    while (c->out_sent < c->out.used) {
        ssize_t n = send(fd, c->out.data + c->out_sent, c->out.used - c->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            watch(fd, c, 1);
            return 0;
        }
        if (n <= 0) {
            drop(fd);
            return -1;
        }
        c->out_sent += (size_t)n;
    }
    c->out.used = c->out_sent = 0;
    watch(fd, c, 0);
    return 0;
}

/* ------------------------------------------------------------------ answering */

static int output_tokens(const struct connection *c) { return c->chunks * 3; }

static void finished(struct connection *c) {
    stats.done++;
    stats.active--;
    c->busy = 0;
    if (!c->stream || c->wants_usage) {
        stats.input_tokens += INPUT_TOKENS;
        stats.output_tokens += (uint64_t)output_tokens(c);
    }
}

static void answer_json(int fd) {
    struct connection *c = connections[fd];
    char text[512], body[1536];
    snprintf(text, sizeof text, "%st=%lld; The quick answer is forty-two, and here is why it is not.", c->mark, (long long)now_ns());
    int n = snprintf(body, sizeof body,
                     "{\"id\":\"chatcmpl-%016llx\",\"object\":\"chat.completion\",\"created\":%lld,\"model\":\"%s\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
                     "\"assistant\",\"content\":\"%s\"},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,"
                     "\"total_tokens\":%d}}",
                     (unsigned long long)c->id, (long long)time(NULL), c->model, text, INPUT_TOKENS, output_tokens(c), INPUT_TOKENS + output_tokens(c));
    say(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", n, body);
    finished(c);
}

static void answer_chunk(int fd) {
    struct connection *c = connections[fd];
    char head[320], event[960];
    snprintf(head, sizeof head, "{\"id\":\"chatcmpl-%016llx\",\"object\":\"chat.completion.chunk\",\"created\":%lld,\"model\":\"%s\"", (unsigned long long)c->id,
             (long long)time(NULL), c->model);
    if (c->sent_chunks == 0)
        say(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n");
    snprintf(event, sizeof event, "%s,\"choices\":[{\"index\":0,\"delta\":{%s\"content\":\"%st=%lld; \"},\"finish_reason\":null}]}", head,
             c->sent_chunks ? "" : "\"role\":\"assistant\",", c->sent_chunks ? "" : c->mark, (long long)now_ns());
    say_event(c, event);
    if (++c->sent_chunks < c->chunks) {
        c->next_at += c->gap_ms * 1000000LL; /* from the plan, not from now: a late timer does not stretch the stream */
        timer_add(c->next_at, fd, c->generation);
        return;
    }
    snprintf(event, sizeof event, "%s,\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}", head);
    say_event(c, event);
    if (c->wants_usage) {
        snprintf(event, sizeof event, "%s,\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}", head, INPUT_TOKENS,
                 output_tokens(c), INPUT_TOKENS + output_tokens(c));
        say_event(c, event);
    }
    say_event(c, "[DONE]");
    say(c, "0\r\n\r\n");
    finished(c);
}

static void answer(int fd) {
    if (connections[fd]->stream)
        answer_chunk(fd);
    else
        answer_json(fd);
}

static void answer_plain(struct connection *c, const char *status, const char *body) {
    say(c, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body), body);
}

/* ------------------------------------------------------------------ reading */

static int number_after(const char *model, char letter, int otherwise) {
    for (const char *p = strchr(model, '-'); p; p = strchr(p + 1, '-'))
        if (p[1] == letter && p[2] >= '0' && p[2] <= '9')
            return atoi(p + 2);
    return otherwise;
}

/* Finds "name" : and returns what follows, or NULL. Enough for the requests of a load test; it does not parse JSON. */
static const char *member(const char *body, const char *name) {
    size_t length = strlen(name);
    for (const char *p = strstr(body, name); p; p = strstr(p + 1, name)) {
        if (p == body || p[-1] != '"' || p[length] != '"')
            continue;
        p += length + 1;
        while (*p == ' ')
            p++;
        if (*p != ':')
            continue;
        for (p++; *p == ' ';)
            p++;
        return p;
    }
    return NULL;
}

static void begin(int fd, const char *body) {
    struct connection *c = connections[fd];
    const char *value = member(body, "model");
    size_t n = 0;
    if (value && *value == '"')
        for (value++; *value && *value != '"' && *value != '\\' && n < sizeof c->model - 1;)
            c->model[n++] = *value++;
    c->model[n] = 0;
    value = member(body, "stream");
    c->stream = value && !strncmp(value, "true", 4);
    value = member(body, "include_usage");
    c->wants_usage = value && !strncmp(value, "true", 4);
    c->mark[0] = 0;
    const char *mark = strstr(body, "q=");
    if (mark) {
        size_t length = strspn(mark + 2, "0123456789.") + 2;
        if (mark[length] == ';' && length + 2 < sizeof c->mark) {
            memcpy(c->mark, mark, length + 1);
            c->mark[length + 1] = 0;
        }
    }
    c->latency_ms = number_after(c->model, 'l', 0);
    c->chunks = number_after(c->model, 'n', 1);
    c->gap_ms = number_after(c->model, 'd', 0);
    if (c->chunks < 1)
        c->chunks = 1;
    c->sent_chunks = 0;
    c->busy = 1;
    c->id = ++last_id;
    stats.requests++;
    stats.active++;
    c->next_at = now_ns() + c->latency_ms * 1000000LL;
    if (c->latency_ms)
        timer_add(c->next_at, fd, c->generation);
    else
        answer(fd);
}

/* Takes one request from what has arrived. Returns 1 where it took one, 0 where more must arrive, -1 where the connection is beyond use. */
static int take_request(int fd) {
    struct connection *c = connections[fd];
    if (!c->in.used)
        return 0;
    char *end = memmem(c->in.data, c->in.used, "\r\n\r\n", 4);
    if (!end)
        return c->in.used > 65536 ? -1 : 0;
    size_t head = (size_t)(end - c->in.data) + 4, length = 0;
    for (char *line = memchr(c->in.data, '\n', head); line && line < end; line = memchr(line, '\n', (size_t)(c->in.data + head - line))) {
        line++;
        if (!strncasecmp(line, "content-length:", 15))
            length = strtoul(line + 15, NULL, 10);
        else if (!strncasecmp(line, "transfer-encoding:", 18))
            return -1;
    }
    if (length > (64u << 20))
        return -1;
    if (c->in.used < head + length)
        return 0;
    char path[256];
    if (sscanf(c->in.data, "%*15s %255s", path) != 1)
        return -1;
    buffer_room(&c->in, 1);
    char *body = c->in.data + head, kept = body[length];
    body[length] = 0;
    size_t path_length = strlen(path);
    if (!strncmp(c->in.data, "GET ", 4)) {
        char text[512];
        if (!strcmp(path, "/stats")) {
            snprintf(text, sizeof text,
                     "{\"requests\":%llu,\"done\":%llu,\"aborted\":%llu,\"active\":%llu,\"connections\":%llu,\"input_tokens\":%llu,\"output_tokens\":%llu}",
                     (unsigned long long)stats.requests, (unsigned long long)stats.done, (unsigned long long)stats.aborted, (unsigned long long)stats.active,
                     (unsigned long long)stats.connections, (unsigned long long)stats.input_tokens, (unsigned long long)stats.output_tokens);
            answer_plain(c, "200 OK", text);
        } else if (path_length >= 7 && !strcmp(path + path_length - 7, "/models"))
            answer_plain(c, "200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"fake-l0\",\"object\":\"model\",\"created\":0,\"owned_by\":\"bench\"}]}");
        else
            answer_plain(c, "404 Not Found", "{\"error\":{\"message\":\"no such path\"}}");
    } else if (path_length >= 17 && !strcmp(path + path_length - 17, "/chat/completions"))
        begin(fd, body);
    else
        answer_plain(c, "404 Not Found", "{\"error\":{\"message\":\"no such path\"}}");
    body[length] = kept;
    c->in.used -= head + length;
    memmove(c->in.data, c->in.data + head + length, c->in.used);
    return 1;
}

static void serve_waiting(int fd) {
    struct connection *c = connections[fd];
    while (c->open && !c->busy) {
        int took = take_request(fd);
        if (took < 0)
            drop(fd);
        if (took <= 0)
            break;
    }
    if (c->open)
        flush_out(fd);
}

static void readable(int fd) {
    struct connection *c = connections[fd];
    for (;;) {
        buffer_room(&c->in, 16384);
        ssize_t n = recv(fd, c->in.data + c->in.used, c->in.room - c->in.used - 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n <= 0) {
            drop(fd);
            return;
        }
        c->in.used += (size_t)n;
        if (c->in.room - c->in.used > 1)
            break; /* the kernel had no more; epoll says when it has */
    }
    serve_waiting(fd);
}

static void accept_all(int listener) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
        if (fd < 0)
            return;
        if (fd >= MAX_FDS) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (!connections[fd])
            connections[fd] = or_die(calloc(1, sizeof **connections));
        struct connection *c = connections[fd];
        c->open = 1;
        c->busy = c->watches_write = 0;
        c->in.used = c->out.used = c->out_sent = 0;
        stats.connections++;
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.fd = fd};
        epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
    }
}

static void fire_timers(void) {
    int64_t now = now_ns();
    while (heap_used && heap[0].at <= now) {
        struct timer due = timer_take();
        struct connection *c = connections[due.fd];
        if (!c->open || c->generation != due.generation)
            continue;
        answer(due.fd);
        if (c->open && flush_out(due.fd) == 0 && !c->busy)
            serve_waiting(due.fd);
    }
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 4096) || getsockname(listener, (struct sockaddr *)&address, &length)) {
        fprintf(stderr, "upstream: cannot listen: %s\n", strerror(errno));
        return 1;
    }
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[512];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    int alarm_clock = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); /* epoll's own waits are whole milliseconds */
    struct epoll_event alarm_event = {.events = EPOLLIN, .data.fd = alarm_clock};
    epoll_ctl(poller, EPOLL_CTL_ADD, alarm_clock, &alarm_event);
    int64_t alarm_at = 0;
    for (;;) {
        if (heap_used && heap[0].at != alarm_at) {
            alarm_at = heap[0].at;
            struct itimerspec when = {.it_value = {.tv_sec = alarm_at / 1000000000LL, .tv_nsec = alarm_at % 1000000000LL}};
            timerfd_settime(alarm_clock, TFD_TIMER_ABSTIME, &when, NULL);
        }
        int n = epoll_wait(poller, events, 512, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                accept_all(listener);
                continue;
            }
            if (fd == alarm_clock) {
                uint64_t rings;
                if (read(alarm_clock, &rings, sizeof rings) > 0)
                    alarm_at = 0;
                continue;
            }
            struct connection *c = connections[fd];
            if (c->open && events[i].events & EPOLLIN)
                readable(fd);
            if (c->open && events[i].events & EPOLLOUT && flush_out(fd) == 0 && !c->busy)
                serve_waiting(fd);
            if (c->open && events[i].events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
                drop(fd);
        }
        fire_timers();
    }
}
