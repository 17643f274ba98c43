/* A load generator for chat gateways. One epoll thread, no dependencies, Linux, loopback only. Prints one line of JSON.
 *
 *   loadgen -p PORT [-u PATH] [-m MODEL] [-k KEY]
 *     closed loop:  -c CONNECTIONS (-n REQUESTS_EACH | -t SECONDS) [-w DROPPED_EACH] [-r RAMP_MS]   the next request follows the last answer
 *     open loop:    -q RATE -t SECONDS [-c MOST_CONNECTIONS]      requests begin on a fixed timetable, however slow the answers are;
 *                                                                 their times count from the timetable, so that a queue cannot hide
 *     -s            streams                    -g MS        the gap between chunks that upstream keeps (for jitter)
 *     -T SECONDS    longest wait for one answer (120)       -x MS  hang up so long after the request began
 *     -b MEMBERS    more JSON members, for example '"max_tokens":50'        -e  count answers whose panel is not "status":"complete"
 *
 * Times are milliseconds. total: request begun to answer whole; ttft: to its first t= mark; chunk: upstream's sending of a chunk to its arrival here (same
 * clock, same machine); jitter: how far two chunks' distance is from -g; slack: the latest t= mark in an answer to the answer's end (for panels: the time over
 * the slowest seat). unique_ids counts different "id" values, crossed the answers that held another request's q= mark.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
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

struct series {
    float *values;
    size_t used, room;
};

enum state { IDLE, CONNECTING, SENDING, READING_HEAD, READING_BODY };
enum body { BY_LENGTH, BY_CHUNKS, BY_CLOSE };
enum failure { REFUSED, STATUS, CUT, TIMEOUT, GARBAGE, NO_END, FAILURES };
static const char *const failure_names[FAILURES] = {"refused", "status", "cut", "timeout", "garbage", "no_end"};

struct connection {
    int fd, number, answered, begun;
    enum state state;
    int64_t due, began, last_chunk, last_mark; /* ns */
    char expected[48];
    /* the request */
    char *out;
    size_t out_length, out_sent, out_room;
    /* the answer's head */
    char head[8192];
    size_t head_used;
    int status;
    enum body body;
    int64_t left; /* bytes of the body, or of the chunk */
    int chunk_part; /* 0 size line, 1 data, 2 the line end after data, 3 trailers */
    char line[64];
    size_t line_used;
    /* the marks in the body */
    int mark_part;
    char mark_kind, mark[40];
    size_t mark_used;
    int seen_first, seen_crossed, seen_done, seen_incomplete, done_part, stop_part, quoted_used;
    char quoted[24];
    int id_part; /* 0 looking, 1 reading, 2 found */
    uint64_t id_hash;
    int must_close;
};

static struct {
    int port, connections, each, dropped, ramp_ms, stream, gap_ms, hang_up_ms, panels;
    double seconds, timeout_s, rate;
    const char *path, *model, *key, *members;
} want = {.port = 0, .connections = 1, .timeout_s = 120, .path = "/v1/chat/completions", .model = "fake-l0", .key = "", .members = ""};

static struct connection *all;
static int poller, active, stopping;
static int64_t started, stop_at, next_due;
static uint64_t sent, ok, chunks, crossed, incomplete, hung_up, bytes, failures[FAILURES], statuses[600], late;
static struct series total, ttft, chunk, jitter, slack;
static uint64_t *ids;
static size_t ids_used, ids_room;
static int *idle;
static int idle_used;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *or_die(void *memory) {
    if (!memory) {
        fputs("loadgen: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static void add(struct series *s, int64_t ns) {
    if (s->used == s->room) {
        s->room = s->room ? s->room * 2 : 8192;
        s->values = or_die(realloc(s->values, s->room * sizeof *s->values));
    }
    s->values[s->used++] = (float)((double)ns / 1e6);
}

static void add_id(uint64_t hash) {
    if (ids_used == ids_room) {
        ids_room = ids_room ? ids_room * 2 : 8192;
        ids = or_die(realloc(ids, ids_room * sizeof *ids));
    }
    ids[ids_used++] = hash;
}

/* ------------------------------------------------------------------ what an answer holds */

static int counts(const struct connection *c) { return c->answered >= want.dropped; }

static void mark_found(struct connection *c, int64_t now) {
    if (c->mark_kind == 'q') {
        if (strcmp(c->mark, c->expected))
            c->seen_crossed = 1;
        return;
    }
    int64_t at = strtoll(c->mark, NULL, 10);
    if (at < started - 1000000000LL || at > now)
        return;
    if (at > c->last_mark)
        c->last_mark = at;
    chunks++;
    if (counts(c)) {
        if (!c->seen_first)
            add(&ttft, now - c->due);
        add(&chunk, now - at);
        if (c->last_chunk && want.gap_ms) {
            int64_t off = now - c->last_chunk - want.gap_ms * 1000000LL;
            add(&jitter, off < 0 ? -off : off);
        }
    }
    c->seen_first = 1;
    c->last_chunk = now;
}

/* Looks for t=…; q=…; "id": "…" "status": "…" and the end ([DONE], or Messages' "message_stop"), byte by byte, since a relay may cut anywhere. */
static void look(struct connection *c, const char *data, size_t length, int64_t now) {
    static const char done[] = "[DONE]", stop[] = "\"message_stop\"";
    for (size_t i = 0; i < length; i++) {
        char byte = data[i];
        if (c->mark_part == 2 && ((byte >= '0' && byte <= '9') || byte == '.') && c->mark_used < sizeof c->mark - 1)
            c->mark[c->mark_used++] = byte;
        else if (c->mark_part == 2 && byte == ';' && c->mark_used) {
            c->mark[c->mark_used] = 0;
            c->mark_part = 0;
            mark_found(c, now);
        } else if (c->mark_part == 1 && byte == '=') {
            c->mark_part = 2;
            c->mark_used = 0;
        } else if (byte == 't' || byte == 'q') {
            c->mark_part = 1;
            c->mark_kind = byte;
        } else
            c->mark_part = 0;

        c->done_part = byte == done[c->done_part] ? c->done_part + 1 : byte == '[';
        if (c->done_part == 6) {
            c->seen_done = 1;
            c->done_part = 0;
        }
        c->stop_part = byte == stop[c->stop_part] ? c->stop_part + 1 : byte == '"';
        if (c->stop_part == (int)sizeof stop - 1) {
            c->seen_done = 1;
            c->stop_part = 0;
        }

        if (c->id_part == 2 && !want.panels)
            continue;
        if (c->id_part == 1) {
            if (byte == '"')
                c->id_part = 2;
            else
                c->id_hash = (c->id_hash ^ (unsigned char)byte) * 1099511628211ULL;
        }
        /* The last 23 bytes without blanks, to see which member a value belongs to. */
        if (byte == ' ')
            continue;
        if (c->quoted_used == (int)sizeof c->quoted - 1) {
            memmove(c->quoted, c->quoted + 1, sizeof c->quoted - 2);
            c->quoted_used--;
        }
        c->quoted[c->quoted_used++] = byte;
        if (byte != '"')
            continue;
        c->quoted[c->quoted_used] = 0;
        if (c->id_part == 0 && c->quoted_used >= 6 && !strcmp(c->quoted + c->quoted_used - 6, "\"id\":\"")) {
            c->id_part = 1;
            c->id_hash = 14695981039346656037ULL;
        }
        if (want.panels && (strstr(c->quoted, "\"status\":\"degraded\"") || strstr(c->quoted, "\"status\":\"failed\"")))
            c->seen_incomplete = 1;
    }
}

/* ------------------------------------------------------------------ one request */

static void begin(struct connection *c, int64_t due, int64_t now);

static void watch(struct connection *c, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

static void hang_up(struct connection *c) {
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

static void next(struct connection *c, int64_t now) {
    c->answered++;
    c->state = IDLE;
    active--;
    if (want.rate > 0)
        idle[idle_used++] = c->number;
    else if (!stopping && (want.each ? c->answered < want.each + want.dropped : now < stop_at))
        begin(c, now, now);
    else
        hang_up(c);
}

static void fail(struct connection *c, enum failure why, int64_t now) {
    failures[why]++;
    hang_up(c);
    next(c, now);
}

static void whole(struct connection *c, int64_t now) {
    if (c->status != 200) {
        statuses[c->status < 600 && c->status > 0 ? c->status : 0]++;
        failures[STATUS]++;
    } else if (want.stream && !c->seen_done)
        failures[NO_END]++;
    else {
        ok++;
        if (c->seen_crossed)
            crossed++;
        if (c->seen_incomplete)
            incomplete++;
        if (c->id_part == 2)
            add_id(c->id_hash);
        if (counts(c)) {
            add(&total, now - c->due);
            if (c->last_mark)
                add(&slack, now - c->last_mark);
        }
    }
    if (c->must_close)
        hang_up(c);
    next(c, now);
}

static void connect_to(struct connection *c) {
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        perror("loadgen: socket");
        exit(1);
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)want.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS)
        errno = 0; /* epoll reports it */
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
    c->state = CONNECTING;
}

static void write_request(struct connection *c) {
    char body[4096];
    snprintf(c->expected, sizeof c->expected, "%d.%d", c->number + 1, c->begun);
    int length = snprintf(body, sizeof body, "{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"q=%s; What is the answer, and why?\"}]%s%s%s}", want.model,
                          c->expected, want.stream ? ",\"stream\":true,\"stream_options\":{\"include_usage\":true}" : "", *want.members ? "," : "", want.members);
    if (!c->out)
        c->out = or_die(malloc(c->out_room = 8192));
    int n = snprintf(c->out, c->out_room,
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nAccept: */*\r\n%s%s%sContent-Length: %d\r\n\r\n%s", want.path, want.port,
                     *want.key ? "Authorization: Bearer " : "", want.key, *want.key ? "\r\n" : "", length, body);
    if (length >= (int)sizeof body || n >= (int)c->out_room) {
        fputs("loadgen: the request is too long\n", stderr);
        exit(1);
    }
    c->out_length = (size_t)n;
    c->out_sent = 0;
}

static void send_more(struct connection *c, int64_t now) {
    while (c->out_sent < c->out_length) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_length - c->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            watch(c, EPOLLOUT | EPOLLIN);
            return;
        }
        if (n <= 0) {
            fail(c, CUT, now);
            return;
        }
        c->out_sent += (size_t)n;
    }
    c->state = READING_HEAD;
    watch(c, EPOLLIN | EPOLLRDHUP);
}

static void begin(struct connection *c, int64_t due, int64_t now) {
    c->begun++;
    c->due = due;
    c->began = now;
    c->last_chunk = c->last_mark = 0;
    c->head_used = c->line_used = c->mark_used = 0;
    c->mark_part = c->seen_first = c->seen_crossed = c->seen_done = c->seen_incomplete = c->done_part = c->stop_part = c->quoted_used = c->id_part = c->chunk_part = c->status = 0;
    c->must_close = 0;
    active++;
    sent++;
    write_request(c);
    if (c->fd < 0)
        connect_to(c);
    else {
        c->state = SENDING;
        send_more(c, now);
    }
}

/* ------------------------------------------------------------------ reading an answer */

static int read_head(struct connection *c) {
    c->head[c->head_used] = 0;
    if (sscanf(c->head, "HTTP/1.%*1[01] %d", &c->status) != 1)
        return -1;
    c->body = BY_CLOSE;
    c->left = 0;
    for (char *line = strchr(c->head, '\n'); line; line = strchr(line, '\n')) {
        line++;
        if (!strncasecmp(line, "content-length:", 15)) {
            c->body = BY_LENGTH;
            c->left = strtoll(line + 15, NULL, 10);
        } else if (!strncasecmp(line, "transfer-encoding: chunked", 26))
            c->body = BY_CHUNKS;
        else if (!strncasecmp(line, "connection: close", 17))
            c->must_close = 1;
    }
    return 0;
}

/* Takes body bytes. Returns 1 where the answer is whole, 0 where more must come, -1 where this is no HTTP. */
static int take_body(struct connection *c, const char *data, size_t length, int64_t now) {
    if (c->body != BY_CHUNKS) {
        size_t part = c->body == BY_LENGTH && (int64_t)length > c->left ? (size_t)c->left : length;
        look(c, data, part, now);
        c->left -= (int64_t)part;
        return c->body == BY_LENGTH && c->left == 0;
    }
    for (size_t i = 0; i < length;) {
        if (c->chunk_part == 1) {
            size_t part = (int64_t)(length - i) > c->left ? (size_t)c->left : length - i;
            look(c, data + i, part, now);
            i += part;
            c->left -= (int64_t)part;
            if (!c->left)
                c->chunk_part = 2;
            continue;
        }
        char byte = data[i++];
        if (byte != '\n') {
            if (c->line_used < sizeof c->line - 1 && byte != '\r')
                c->line[c->line_used++] = byte;
            continue;
        }
        c->line[c->line_used] = 0;
        if (c->chunk_part == 2) {
            if (c->line_used)
                return -1;
            c->chunk_part = 0;
        } else if (c->chunk_part == 3) {
            if (!c->line_used)
                return 1;
        } else {
            char *end;
            c->left = strtoll(c->line, &end, 16);
            if (end == c->line || c->left < 0)
                return -1;
            c->chunk_part = c->left ? 1 : 3;
        }
        c->line_used = 0;
    }
    return 0;
}

static void receive(struct connection *c) {
    static char data[262144];
    ssize_t n = recv(c->fd, data, sizeof data, 0);
    int64_t now = now_ns();
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (c->state == IDLE) { /* the server closed a connection that waited for its next turn */
        hang_up(c);
        return;
    }
    if (n <= 0) {
        if (n == 0 && c->state == READING_BODY && c->body == BY_CLOSE) {
            c->must_close = 1;
            whole(c, now);
        } else
            fail(c, CUT, now);
        return;
    }
    bytes += (uint64_t)n;
    const char *body = data;
    size_t length = (size_t)n;
    if (c->state == READING_HEAD) {
        size_t before = c->head_used, part = sizeof c->head - 1 - before;
        if (part > length)
            part = length;
        memcpy(c->head + before, data, part);
        c->head_used += part;
        char *end = memmem(c->head, c->head_used, "\r\n\r\n", 4);
        if (!end) {
            if (c->head_used == sizeof c->head - 1)
                fail(c, GARBAGE, now);
            return;
        }
        size_t taken = (size_t)(end - c->head) + 4 - before;
        c->head_used = (size_t)(end - c->head) + 2;
        if (read_head(c)) {
            fail(c, GARBAGE, now);
            return;
        }
        c->state = READING_BODY;
        body += taken;
        length -= taken;
        if (c->body == BY_LENGTH && !c->left) {
            whole(c, now);
            return;
        }
    }
    int end = take_body(c, body, length, now);
    if (end < 0)
        fail(c, GARBAGE, now);
    else if (end)
        whole(c, now);
}

/* ------------------------------------------------------------------ the run */

static void on_event(struct connection *c, uint32_t events) {
    int64_t now = now_ns();
    if (c->fd < 0)
        return;
    if (c->state == CONNECTING) {
        int error = 0;
        socklen_t length = sizeof error;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
        if (error || events & (EPOLLERR | EPOLLHUP)) {
            fail(c, REFUSED, now);
            return;
        }
        c->state = SENDING;
        send_more(c, now);
    } else if (c->state == SENDING)
        send_more(c, now);
    else
        receive(c);
}

static void look_at_clock(int64_t now) {
    for (int i = 0; i < want.connections; i++) {
        struct connection *c = &all[i];
        if (c->state == IDLE)
            continue;
        if (want.hang_up_ms && now - c->began > want.hang_up_ms * 1000000LL) {
            hung_up++;
            hang_up(c);
            next(c, now);
        } else if ((double)(now - c->began) > want.timeout_s * 1e9)
            fail(c, TIMEOUT, now);
    }
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int by_hash(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static float at(const struct series *s, double share) {
    size_t place = (size_t)(share * (double)s->used);
    return s->values[place < s->used ? place : s->used - 1];
}

static void print_series(const char *name, struct series *s) {
    if (!s->used)
        return;
    qsort(s->values, s->used, sizeof *s->values, by_value);
    double sum = 0;
    for (size_t i = 0; i < s->used; i++)
        sum += s->values[i];
    printf(",\"%s\":{\"n\":%zu,\"mean\":%.4f,\"p50\":%.4f,\"p90\":%.4f,\"p99\":%.4f,\"max\":%.4f}", name, s->used, sum / (double)s->used, at(s, .5), at(s, .9), at(s, .99),
           s->values[s->used - 1]);
}

static void print_all(double elapsed) {
    size_t different = 0;
    qsort(ids, ids_used, sizeof *ids, by_hash);
    for (size_t i = 0; i < ids_used; i++)
        different += i == 0 || ids[i] != ids[i - 1];
    uint64_t errors = 0;
    for (int i = 0; i < FAILURES; i++)
        errors += failures[i];
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("{\"sent\":%llu,\"ok\":%llu,\"errors\":%llu,\"hung_up\":%llu,\"seconds\":%.3f,\"per_second\":%.2f,\"chunks\":%llu,\"bytes\":%llu,\"unique_ids\":%zu,\"crossed\":%llu,"
           "\"incomplete\":%llu,\"begun_late\":%llu,\"own_cpu_s\":%.3f,\"failures\":{",
           (unsigned long long)sent, (unsigned long long)ok, (unsigned long long)errors, (unsigned long long)hung_up, elapsed, (double)ok / elapsed,
           (unsigned long long)chunks, (unsigned long long)bytes, different, (unsigned long long)crossed, (unsigned long long)incomplete, (unsigned long long)late, cpu);
    for (int i = 0; i < FAILURES; i++)
        printf("%s\"%s\":%llu", i ? "," : "", failure_names[i], (unsigned long long)failures[i]);
    printf("},\"statuses\":{");
    const char *comma = "";
    for (int i = 0; i < 600; i++)
        if (statuses[i]) {
            printf("%s\"%d\":%llu", comma, i, (unsigned long long)statuses[i]);
            comma = ",";
        }
    printf("}");
    print_series("total", &total);
    print_series("ttft", &ttft);
    print_series("chunk", &chunk);
    print_series("jitter", &jitter);
    print_series("slack", &slack);
    printf("}\n");
}

static void read_options(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "p:u:m:k:c:n:t:w:r:q:sg:T:x:b:e")) != -1)
        switch (option) {
        case 'p': want.port = atoi(optarg); break;
        case 'u': want.path = optarg; break;
        case 'm': want.model = optarg; break;
        case 'k': want.key = optarg; break;
        case 'c': want.connections = atoi(optarg); break;
        case 'n': want.each = atoi(optarg); break;
        case 't': want.seconds = atof(optarg); break;
        case 'w': want.dropped = atoi(optarg); break;
        case 'r': want.ramp_ms = atoi(optarg); break;
        case 'q': want.rate = atof(optarg); break;
        case 's': want.stream = 1; break;
        case 'g': want.gap_ms = atoi(optarg); break;
        case 'T': want.timeout_s = atof(optarg); break;
        case 'x': want.hang_up_ms = atoi(optarg); break;
        case 'b': want.members = optarg; break;
        case 'e': want.panels = 1; break;
        default: exit(2);
        }
    int timed = want.seconds > 0, open_loop = want.rate > 0;
    if (want.port < 1 || want.port > 65535 || want.connections < 1 || (open_loop && (!timed || want.each)) || (!open_loop && timed == (want.each > 0))) {
        fputs("loadgen: needs -p PORT and either -n REQUESTS, -t SECONDS, or -q RATE -t SECONDS (see the head of loadgen.c)\n", stderr);
        exit(2);
    }
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    poller = epoll_create1(EPOLL_CLOEXEC);
    all = or_die(calloc((size_t)want.connections, sizeof *all));
    idle = or_die(calloc((size_t)want.connections, sizeof *idle));
    for (int i = 0; i < want.connections; i++) {
        all[i].fd = -1;
        all[i].number = i;
    }
    started = now_ns();
    stop_at = want.seconds > 0 ? started + (int64_t)(want.seconds * 1e9) : INT64_MAX;
    int begun = 0;
    int64_t checked = started, gap_ns = want.rate > 0 ? (int64_t)(1e9 / want.rate) : 0;
    int alarm_clock = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); /* epoll's own waits are whole milliseconds */
    if (want.rate > 0) {
        for (int i = want.connections - 1; i >= 0; i--)
            idle[idle_used++] = i;
        next_due = started;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
        epoll_ctl(poller, EPOLL_CTL_ADD, alarm_clock, &event);
    }
    struct epoll_event events[512];
    for (;;) {
        int64_t now = now_ns();
        int wait_ms = 50;
        if (want.rate > 0) {
            while (next_due <= now && next_due < stop_at && idle_used) {
                if (now - next_due > 10000000LL)
                    late++;
                begin(&all[idle[--idle_used]], next_due, now);
                next_due += gap_ns;
            }
            if (next_due >= stop_at && !active)
                break;
            if (idle_used && next_due < stop_at) {
                struct itimerspec when = {.it_value = {.tv_sec = next_due / 1000000000LL, .tv_nsec = next_due % 1000000000LL}};
                timerfd_settime(alarm_clock, TFD_TIMER_ABSTIME, &when, NULL);
            }
        } else {
            while (begun < want.connections && now >= started + want.ramp_ms * 1000000LL * begun / want.connections) {
                begin(&all[begun], now, now);
                begun++;
            }
            if (begun < want.connections)
                wait_ms = 1;
            else if (!active)
                break;
        }
        int n = epoll_wait(poller, events, 512, wait_ms);
        for (int i = 0; i < n; i++) {
            uint64_t rings;
            if (events[i].data.ptr)
                on_event(events[i].data.ptr, events[i].events);
            else if (read(alarm_clock, &rings, sizeof rings) < 0)
                continue;
        }
        now = now_ns();
        if (now - checked > 20000000LL) {
            look_at_clock(now);
            checked = now;
        }
    }
    print_all((double)(now_ns() - started) / 1e9);
    return 0;
}
