/*
 * libwrote: files and logs that say what each write survives.
 *
 * Every function that can fail returns 0, or the number of the error as in errno.h. Its last
 * parameter may be NULL; otherwise it receives the error's description, to be freed by
 * wrote_error_free(). It is left alone on success. After an error no other result is set.
 *
 * A path is a string as for open(2). Handles are made by functions that end in _open, and freed by
 * those that end in _free, which accept NULL. Unless a function says otherwise, one thread at a time
 * may use a handle, and any thread may. Functions keep no pointer to their arguments. The library
 * keeps no state between calls but one buffer of each thread that calls wrote_write().
 *
 * After fork(2) a child can't use its parent's handles: each call fails with WROTE_KIND_FORKED, and
 * freeing one does nothing. The child opens its own.
 */

#ifndef WROTE_H
#define WROTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// The kind of an error. A later version may have more.
typedef enum {
  // The kernel refused an operation on a file. The errno says why.
  WROTE_KIND_FILE = 1,
  // A log has no room for a record yet: the disk is full, or there is no descriptor or memory.
  // It keeps the record and tries again. Wait again, by wrote_log_ticket(), instead of appending
  // it again.
  WROTE_KIND_NOT_YET = 2,
  // An earlier flush failed. What was written since the one before is in doubt, and nothing more
  // is written.
  WROTE_KIND_POISONED = 3,
  // The file supports no direct operation at this offset or of this length.
  WROTE_KIND_ALIGNMENT = 4,
  // A record, a line or a request does not fit into a buffer.
  WROTE_KIND_TOO_LONG = 5,
  // The request is invalid for this path. Nothing was changed.
  WROTE_KIND_REFUSED = 6,
  // Another program changed the length of a file that this one appends to.
  WROTE_KIND_INTERFERED = 7,
  // The log was cut before a record that this reader has read. Seek, and read on.
  WROTE_KIND_TRUNCATED = 8,
  // A copy differs from its source.
  WROTE_KIND_DIFFERS = 9,
  // Bytes that were written can't be read any more.
  WROTE_KIND_DAMAGED = 10,
  // A segment of another log is among this log's.
  WROTE_KIND_FOREIGN = 11,
  // The work was interrupted.
  WROTE_KIND_INTERRUPTED = 12,
  // The handle was opened before fork(2), by the parent.
  WROTE_KIND_FORKED = 13,
  // A thread, ring or descriptor could not be made.
  WROTE_KIND_ENGINE = 14,
  // A bug in the library. Free the handle of the call, and use it for nothing else.
  WROTE_KIND_PANIC = 15,
  // An error of a later version.
  WROTE_KIND_OTHER = 16,
} wrote_kind;

// The worst event that a record survives.
typedef enum {
  // It is in this process's memory.
  WROTE_SURVIVES_NOTHING = 0,
  // It is in the kernel's memory.
  WROTE_SURVIVES_PROCESS_CRASH = 1,
  // It is on the device, perhaps in its volatile cache.
  WROTE_SURVIVES_OS_CRASH = 2,
  // It is on stable storage.
  WROTE_SURVIVES_POWER_LOSS = 3,
} wrote_survives;

// When writes become durable without a call for each.
typedef enum {
  // WROTE_SYNC_NO for a writer, WROTE_SYNC_ALWAYS for a log.
  WROTE_SYNC_DEFAULT = 0,
  // With every write, which survives a power loss once its call, or the wait for its record, has
  // returned.
  WROTE_SYNC_ALWAYS = 1,
  // About once a second.
  WROTE_SYNC_EVERY_SEC = 2,
  // About once in sync_interval_ms.
  WROTE_SYNC_INTERVAL = 3,
  // Only by an explicit call, or when the kernel decides.
  WROTE_SYNC_NO = 4,
} wrote_sync;

// The description of an error.
typedef struct wrote_error wrote_error;

// A plain file of lines. Any number of threads may call its functions at any time, except for
// wrote_lines_free().
typedef struct wrote_lines wrote_lines;

// An append-only log in a folder. Any number of threads may call its functions at any time, except
// for wrote_log_free().
typedef struct wrote_log wrote_log;

// Reads the records of a log in order. It takes no lock, and sees the records of every process.
typedef struct wrote_log_reader wrote_log_reader;

// Reads a file from start to end, in place of fopen(3) and fread(3): past the page cache where
// that does not hold a long file, with several reads in flight.
typedef struct wrote_reader wrote_reader;

// The promise for one record, or for a group of them. It does not keep its log open.
typedef struct wrote_ticket wrote_ticket;

// An eventfd(2) for a log to wake an event loop. One serves any number of tickets. Any thread may
// use it at any time, except for wrote_wakeup_free().
typedef struct wrote_wakeup wrote_wakeup;

// Writes a file from start to end, in place of fopen(3), fwrite(3) and fclose(3).
//
// Bytes go into buffers (8 MiB at most, for a file of any size), and from there to the file in the
// background. An error there is returned by the next call and by every later one.
typedef struct wrote_writer wrote_writer;

// Options of a writer: `wrote_writer_options options = { sizeof options };` and then the ones that
// you want. 0 is the default of each.
typedef struct {
  // sizeof(wrote_writer_options).
  size_t size;
  // The expected length in bytes. The space is reserved at once, so that a lack of it shows now.
  uint64_t size_hint;
  // One of enum wrote_sync.
  uint32_t sync;
  // The interval of WROTE_SYNC_INTERVAL.
  uint32_t sync_interval_ms;
  // The permissions of a new file, less the umask. 0 is 0666.
  uint32_t mode;
  // An existing name is an error, EEXIST.
  bool create_new;
  // Write through the page cache, for a file that is soon read again and need not last.
  bool cached;
  // Let the file take the place of the one at its path when wrote_writer_finish() is called: a
  // wrote_write() for content of any size. After a crash at any moment the file has either its
  // old content or the new. A process that is killed before leaves a file
  // ".NAME.wrote-PROCESS-NUMBER" in the folder, which `wrote clean` removes.
  bool replace;
  // Append to the file, or create it. It is locked (flock(2)): a second writer fails after a
  // second. Programs that share a file should use a wrote_log.
  bool append;
} wrote_writer_options;

// The result of a writer.
typedef struct {
  // The file's length, in bytes.
  uint64_t bytes;
  // The time from the opening to the end, in nanoseconds.
  uint64_t elapsed_ns;
  // Whether the file was written past the page cache.
  bool direct;
  // Whether the file and its name are on stable storage.
  bool durable;
} wrote_written;

// The writes to a file that a power loss leaves whole or not done (RWF_ATOMIC, pwritev2(2)). Their
// length is a power of two, and divides their offset.
typedef struct {
  // The shortest and the longest, in bytes.
  uint32_t bytes_min;
  uint32_t bytes_max;
  // The longest that the device itself keeps whole, in bytes; 0 if none.
  uint32_t device_bytes_max;
  // The most buffers of one write.
  uint32_t segments_max;
} wrote_atomic;

// A record that is lent until the reader's next call.
typedef struct {
  // Its bytes, which end with no NUL. NULL where there is no record.
  const void *data;
  // The number of its bytes.
  size_t len;
  // Its sequence: 0 for the first record ever.
  uint64_t sequence;
  // When the log handed it to the disk, in nanoseconds since 1970, by the writer's clock. 0
  // where that is not known: after a repair.
  uint64_t written_at_ns;
} wrote_record;

// Options of a log: `wrote_log_options options = { sizeof options };` and then the ones that you
// want. 0 is the default of each.
typedef struct {
  // sizeof(wrote_log_options).
  size_t size;
  // The approximate length of a segment in bytes. 0 is 64 MiB.
  uint64_t segment_bytes;
  // The most bytes of the log on disk; then its oldest segments go. 0 keeps all.
  uint64_t retain_bytes;
  // For how many seconds the log keeps records at least. 0 keeps all.
  uint64_t retain_age_s;
  // The size of each buffer, into which a record must fit. 0 is 1 MiB.
  size_t buffer_bytes;
  // The number of buffers. 0 is 8.
  uint32_t buffers;
  // One of enum wrote_sync.
  uint32_t sync;
  // The interval of WROTE_SYNC_INTERVAL.
  uint32_t sync_interval_ms;
  // The permissions of a new log's files, less the umask. 0 is 0666.
  uint32_t mode;
} wrote_log_options;

// The figures of a log.
typedef struct {
  // Records found on opening.
  uint64_t found_records;
  // Bytes found on opening after the last whole record, of a write that a crash cut short.
  uint64_t torn_bytes;
  // The sequence of the first record that is there.
  uint64_t first_sequence;
  // The sequence that the next record gets.
  uint64_t next_sequence;
  // Every record before this one survives a crash of the process.
  uint64_t written_sequence;
  // Every record before this one survives a power loss.
  uint64_t durable_sequence;
  // Batches written.
  uint64_t batches;
  // Flushes, and writes that were durable by themselves.
  uint64_t flushes;
  // The time that they took, in nanoseconds.
  uint64_t flush_time_ns;
  // Bytes written to segments, with the padding of blocks.
  uint64_t written_bytes;
  // The part of them that was flushed.
  uint64_t flushed_bytes;
  // Segments begun.
  uint64_t segments;
  // Segments that retention removed.
  uint64_t removed;
  // Whether the opening found that the log had been closed.
  bool found_closed;
} wrote_log_stats;

// Options of a file of lines: `wrote_lines_options options = { sizeof options };` and then the
// ones that you want. 0 is the default of each.
typedef struct {
  // sizeof(wrote_lines_options).
  size_t size;
  // The bytes of lines that are collected, into which a line must fit. 0 is 1 MiB.
  size_t buffer_bytes;
  // One of enum wrote_sync.
  uint32_t sync;
  // The interval of WROTE_SYNC_INTERVAL.
  uint32_t sync_interval_ms;
  // The permissions of a new file, less the umask. 0 is 0666.
  uint32_t mode;
  // Whether the opening waits until another writer has closed the file; otherwise it is refused.
  bool waits;
} wrote_lines_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library, such as "0.1.0". Never freed. Any thread may call it.
const char *wrote_version(void);

// Returns the kind of an error.
wrote_kind wrote_error_kind(const wrote_error *error);

// Returns the number of an error, as in errno.h: the kernel's own, or the nearest one where the
// library refused by itself (EBUSY, EISDIR, EINVAL, EMSGSIZE, EIO, ESTALE, EPERM, EINTR). The call
// returned it too.
int wrote_error_errno(const wrote_error *error);

// Returns the file or folder that an error is about, or NULL. It lives as long as the error.
const char *wrote_error_path(const wrote_error *error);

// Returns the byte of the file at which the operation failed, or -1 where there is none.
int64_t wrote_error_offset(const wrote_error *error);

// Returns one line for people: path, action, place and the kernel's words. It lives as long as the
// error.
const char *wrote_error_message(const wrote_error *error);

// Frees the description of an error.
void wrote_error_free(wrote_error *error);

// Opens a writer that creates the file, or empties an existing one, like fopen(3) with "w", unless
// its options say `replace` or `append`.
//
// After wrote_writer_flush() the bytes survive a crash of the process, after wrote_writer_sync()
// and wrote_writer_finish() a power loss, with the name of a new file. A crash before leaves any
// part of the file: with `replace` it has the old content until the new one is whole.
//
// `options` may be NULL. Any thread may call it at any time.
int wrote_writer_open(const char *to,
                      const wrote_writer_options *how,
                      wrote_writer **writer,
                      wrote_error **error);

// Writes all bytes, into the writer's buffer at first. They survive nothing yet. Waits only while
// all buffers are in flight.
int wrote_writer_write(wrote_writer *writer, const void *data, size_t len, wrote_error **error);

// Writes the bytes of all pieces in order, as if they were one. With WROTE_SYNC_ALWAYS it syncs
// once.
int wrote_writer_writev(wrote_writer *writer,
                        const struct iovec *pieces,
                        size_t count,
                        wrote_error **error);

// Writes all bytes to the file, where other programs see them, and waits for that. They then
// survive a crash of the process. A file that is to replace another is not there yet.
int wrote_writer_flush(wrote_writer *writer, wrote_error **error);

// Makes earlier writes durable, with the name of a new file. Only wrote_writer_finish() puts a
// file in another's place.
int wrote_writer_sync(wrote_writer *writer, wrote_error **error);

// Writes the rest, makes the file and its name durable, and puts it in the place of the one that
// it replaces: the commit. Returns any error since the opening; then an old file is unchanged.
//
// It ends the writer, also by an error. Call wrote_writer_free() afterwards. `written` may be
// NULL.
int wrote_writer_finish(wrote_writer *writer, wrote_written *written, wrote_error **error);

// Like wrote_writer_finish() without flushes of the device: the file survives a crash of the
// process and nothing worse.
int wrote_writer_close(wrote_writer *writer, wrote_written *written, wrote_error **error);

// Frees a writer. One that was not ended is abandoned: a file that it created is removed, an old
// one that it was to replace stays, and in one that was there before, what was written until now
// stays.
void wrote_writer_free(wrote_writer *writer);

// Replaces the content of the file at `to`, or creates the file. The content is durable when this
// returns.
//
// After a crash of the process or the kernel or a power loss, at any moment, the file has either
// its old content or the new, and other processes see one or the other. The new file gets the old
// one's permissions, owner and attributes; symbolic links are followed and kept. EBUSY: the file
// is a mount point, as single files in containers are, and nothing can replace it.
//
// Any thread may call it at any time.
int wrote_write(const char *to, const void *data, size_t len, wrote_error **error);

// Creates a new file at `to` with this content, complete and durable. An existing name is an
// error, EEXIST, and its file keeps its content.
//
// Any thread may call it at any time.
int wrote_write_new(const char *to, const void *data, size_t len, wrote_error **error);

// Copies the file `from` to `to`, which must not exist yet. The copy is durable when this returns,
// and has its name only once it is whole. It shares the blocks of `from` where the file system
// can. The number of bytes goes to `len`, which may be NULL.
//
// Any thread may call it at any time.
int wrote_copy(const char *from, const char *to, uint64_t *len, wrote_error **error);

// Finds the atomic writes to the file at `path`. EOPNOTSUPP: there are none, and the error's
// message has the reason.
//
// Any thread may call it at any time.
int wrote_atomic_writes(const char *path, wrote_atomic *writes, wrote_error **error);

// Opens a file for reading. Any thread may call it at any time.
int wrote_reader_open(const char *from, wrote_reader **reader, wrote_error **error);

// Reads up to `room` bytes into `into`, and stores their number in `len`: 0 at the end of the
// file. A file that has grown since is read on.
int wrote_reader_read(wrote_reader *reader,
                      void *into,
                      size_t room,
                      size_t *len,
                      wrote_error **error);

// Reads one line, without its line feed. `line` is NULL at the end of the file; else it lives
// until the reader's next call. It has no NUL at its end, and may have some in it.
int wrote_reader_line(wrote_reader *reader, const char **line, size_t *len, wrote_error **error);

// Continues at this byte of the file.
int wrote_reader_seek(wrote_reader *reader, uint64_t offset, wrote_error **error);

// Frees a reader.
void wrote_reader_free(wrote_reader *reader);

// Reads the log in a folder from record `from` to its end, or from the first one that is left. One
// that follows waits at the end for further records, and for a log that is not there yet.
int wrote_log_reader_open(const char *folder,
                          uint64_t from,
                          bool follows,
                          wrote_log_reader **reader,
                          wrote_error **error);

// Reads the next record. At the end, `record->data` is NULL and `record->len` 0. A reader that
// follows waits up to `timeout_ms` first, or as long as it takes where that is negative. An empty
// record has a pointer that is not NULL.
int wrote_log_reader_next(wrote_log_reader *reader,
                          int64_t timeout_ms,
                          wrote_record *record,
                          wrote_error **error);

// Continues with record `sequence`, or with the first later one that is there.
int wrote_log_reader_seek(wrote_log_reader *reader, uint64_t sequence, wrote_error **error);

// Continues with the first record that was written at this time or later, in nanoseconds since
// 1970.
int wrote_log_reader_seek_time(wrote_log_reader *reader, uint64_t time_ns, wrote_error **error);

// Returns how many records the reader has passed over since its opening, because retention, a trim
// or a repair had removed them.
uint64_t wrote_log_reader_passed_over(const wrote_log_reader *reader);

// Frees a reader.
void wrote_log_reader_free(wrote_log_reader *reader);

// Opens the log in a folder, or makes both. A second writer is refused, in this process or
// another. `options` may be NULL. Any thread may call it at any time.
int wrote_log_open(const char *folder,
                   const wrote_log_options *how,
                   wrote_log **log,
                   wrote_error **error);

// Appends a record: copies its bytes and gives it its sequence. It survives nothing yet. Waits
// only while all buffers are in flight.
//
// `sequence` and `ticket` may be NULL. Without a ticket the record is written within about 10 ms,
// and wrote_log_sync() makes it durable. A ticket is freed by wrote_ticket_free().
int wrote_log_append(const wrote_log *log,
                     const void *record,
                     size_t len,
                     uint64_t *sequence,
                     wrote_ticket **ticket,
                     wrote_error **error);

// Appends a record, and waits until it is as safe as the log promises: it then survives a power
// loss (WROTE_SYNC_ALWAYS), and so does every record before it, or else a crash of the process.
// Threads that wait at the same time share a flush. `sequence` may be NULL.
int wrote_log_append_wait(const wrote_log *log,
                          const void *record,
                          size_t len,
                          uint64_t *sequence,
                          wrote_error **error);

// Appends consecutive records. After a crash either all of them exist or none. All together must
// fit into one buffer. The first one's sequence goes to `sequence`; `ticket` is for all. Both may
// be NULL.
int wrote_log_append_all(const wrote_log *log,
                         const struct iovec *records,
                         size_t count,
                         uint64_t *sequence,
                         wrote_ticket **ticket,
                         wrote_error **error);

// Makes the ticket of a record that was appended by any caller, which waits for what the log
// promises. It is freed by wrote_ticket_free().
int wrote_log_ticket(const wrote_log *log,
                     uint64_t sequence,
                     wrote_ticket **ticket,
                     wrote_error **error);

// Makes every record durable that was appended until now, whatever the log promises by itself.
int wrote_log_sync(const wrote_log *log, wrote_error **error);

// Removes segments whose records are all before `sequence`, durably. The sequence of the first
// record that is left goes to `first`, which may be NULL.
int wrote_log_trim_before(const wrote_log *log,
                          uint64_t sequence,
                          uint64_t *first,
                          wrote_error **error);

// Removes record `sequence` and all later ones, durably. The next record gets that sequence.
int wrote_log_truncate_from(const wrote_log *log, uint64_t sequence, wrote_error **error);

// Stores what a record survives now in `survives`.
int wrote_log_survives(const wrote_log *log,
                       uint64_t sequence,
                       wrote_survives *survives,
                       wrote_error **error);

// Stores the log's figures in the first `size` bytes of `stats`: pass sizeof(wrote_log_stats).
int wrote_log_get_stats(const wrote_log *log,
                        wrote_log_stats *stats,
                        size_t size,
                        wrote_error **error);

// Ends the log: writes all records, makes them durable, and marks the log as closed. Returns any
// error since the opening. Later appends by any thread are refused. Call wrote_log_free()
// afterwards.
int wrote_log_close(const wrote_log *log, wrote_error **error);

// Frees a log, when no other thread is in a call with it. Its tickets and readers may live on. One
// that is not closed is closed first, and an error of that is lost: call wrote_log_close() before.
void wrote_log_free(wrote_log *log);

// Makes a wakeup, which is freed by wrote_wakeup_free().
int wrote_wakeup_open(wrote_wakeup **wakeup, wrote_error **error);

// Returns the descriptor to wait for, by poll(2), epoll(7) or io_uring(7): when it is readable,
// call wrote_wakeup_clear(), and then poll the tickets again. It belongs to the wakeup; do not
// close it. Returns -1 for NULL.
int wrote_wakeup_fd(const wrote_wakeup *wakeup);

// Makes the descriptor unreadable again, before the tickets are polled.
void wrote_wakeup_clear(const wrote_wakeup *wakeup);

// Frees a wakeup. Tickets that were polled with it may live on.
void wrote_wakeup_free(wrote_wakeup *wakeup);

// Returns the sequence of the ticket's record, the last one of a group.
uint64_t wrote_ticket_sequence(const wrote_ticket *ticket);

// Lets the ticket wait until its record survives a power loss, whatever its log promises. To be
// called before the first wait or poll; later it has no effect.
int wrote_ticket_until_durable(wrote_ticket *ticket, wrote_error **error);

// Waits until the record is as safe as its log promises: with WROTE_SYNC_ALWAYS it survives a
// power loss, and so does every record before it; else a crash of the process.
//
// WROTE_KIND_NOT_YET: the disk is full, and the record may still be written. Wait again by
// wrote_log_ticket(). Any other error is final: the record is not safe.
int wrote_ticket_wait(wrote_ticket *ticket, wrote_error **error);

// Asks without waiting. Sets `done` once the record is as safe as wrote_ticket_wait() says. Until
// then the wakeup becomes readable when it is worth asking again, once at least.
int wrote_ticket_poll(wrote_ticket *ticket,
                      const wrote_wakeup *wakeup,
                      bool *done,
                      wrote_error **error);

// Frees a ticket. Its record is written all the same.
void wrote_ticket_free(wrote_ticket *ticket);

// Opens a file of lines, or makes it. The end that a crash tore is moved to NAME.torn-0, or the
// next free number. A second writer is refused. `options` may be NULL.
int wrote_lines_open(const char *file,
                     const wrote_lines_options *how,
                     wrote_lines **lines,
                     wrote_error **error);

// Appends a line, which has no line feed in it: copies its bytes, and a line feed after them.
//
// `ticket` may be NULL. Without one the line is written within about 10 ms, and
// wrote_lines_flush() makes it durable. A ticket is freed by wrote_ticket_free().
int wrote_lines_append(const wrote_lines *lines,
                       const void *line,
                       size_t len,
                       wrote_ticket **ticket,
                       wrote_error **error);

// Appends a line, and waits until it survives a power loss (WROTE_SYNC_ALWAYS, the default), or
// else a crash of the process. Threads that wait at the same time share a flush.
int wrote_lines_append_wait(const wrote_lines *lines,
                            const void *line,
                            size_t len,
                            wrote_error **error);

// Makes every line durable that was appended until now.
int wrote_lines_flush(const wrote_lines *lines, wrote_error **error);

// Opens the path anew, after another program has renamed the file. Earlier lines are durable then.
int wrote_lines_reopen(const wrote_lines *lines, wrote_error **error);

// Makes all lines durable, and releases the file. Later appends by any thread are refused. Call
// wrote_lines_free() afterwards.
int wrote_lines_close(const wrote_lines *lines, wrote_error **error);

// Frees a file of lines, when no other thread is in a call with it. One that is not closed is
// closed first, and an error of that is lost.
void wrote_lines_free(wrote_lines *lines);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WROTE_H */
