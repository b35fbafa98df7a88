/*
 * libwrote: files and logs that state what each write survives.
 *
 * Every function that can fail returns 0, or the number of the error as in errno.h. Its last
 * parameter may be NULL; otherwise, after an error, the error's description is stored there, to be
 * freed with wrote_error_free(). On success, nothing is stored there. After an error, no other
 * result is set.
 *
 * A path is a string as for open(2). Handles are created by functions whose names end in _open, and
 * freed by those whose names end in _free, which accept NULL. Unless stated otherwise, any thread
 * may use a handle, but only one at a time. Functions keep no pointer to their arguments. Between
 * calls, the library keeps no state except a buffer for each thread that calls wrote_write().
 *
 * After fork(2), a child can't use its parent's handles: each call fails with WROTE_KIND_FORKED,
 * and freeing a handle does nothing. The child opens its own handles.
 */

#ifndef WROTE_H
#define WROTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// The kind of an error. Later versions may have more kinds.
typedef enum {
  // The kernel refused an operation on a file. The errno gives the reason.
  WROTE_KIND_FILE = 1,
  // A log has no room for a record yet: the disk is full, or there is no descriptor or memory.
  // The log keeps the record and tries again. Use wrote_log_ticket() to wait for the record
  // again, instead of appending it again.
  WROTE_KIND_NOT_YET = 2,
  // An earlier flush failed. Writes since the previous flush are in doubt, and nothing more is
  // written.
  WROTE_KIND_POISONED = 3,
  // The file does not support a direct operation at this offset or of this length.
  WROTE_KIND_ALIGNMENT = 4,
  // A record, a line or a request does not fit into a buffer.
  WROTE_KIND_TOO_LONG = 5,
  // The request is invalid for this path. Nothing was changed.
  WROTE_KIND_REFUSED = 6,
  // Another program changed the length of a file to which this program appends.
  WROTE_KIND_INTERFERED = 7,
  // The log was truncated before a record that this reader has read. Seek, and continue reading.
  WROTE_KIND_TRUNCATED = 8,
  // A copy differs from its source.
  WROTE_KIND_DIFFERS = 9,
  // Written bytes can no longer be read.
  WROTE_KIND_DAMAGED = 10,
  // A segment of another log is in this log's folder.
  WROTE_KIND_FOREIGN = 11,
  // The work was interrupted.
  WROTE_KIND_INTERRUPTED = 12,
  // The handle was opened by the parent process, before fork(2).
  WROTE_KIND_FORKED = 13,
  // A thread, ring or descriptor could not be created.
  WROTE_KIND_ENGINE = 14,
  // A bug in the library. Free the handle of the call, and do not use it for anything else.
  WROTE_KIND_PANIC = 15,
  // An error that this version does not know.
  WROTE_KIND_OTHER = 16,
} wrote_kind;

// The worst event that a record survives.
typedef enum {
  // The record is in this process's memory.
  WROTE_SURVIVES_NOTHING = 0,
  // The record is in the kernel's memory.
  WROTE_SURVIVES_PROCESS_CRASH = 1,
  // The record is on the device, perhaps in its volatile cache.
  WROTE_SURVIVES_OS_CRASH = 2,
  // The record is on stable storage.
  WROTE_SURVIVES_POWER_LOSS = 3,
} wrote_survives;

// When writes become durable without an explicit call.
typedef enum {
  // WROTE_SYNC_NO for a writer, WROTE_SYNC_ALWAYS for a log.
  WROTE_SYNC_DEFAULT = 0,
  // With every write: the data survives a power loss once the call, or the wait for the record,
  // has returned.
  WROTE_SYNC_ALWAYS = 1,
  // About once a second.
  WROTE_SYNC_EVERY_SEC = 2,
  // About once per sync_interval_ms.
  WROTE_SYNC_INTERVAL = 3,
  // Only by an explicit call, or when the kernel decides to write.
  WROTE_SYNC_NO = 4,
} wrote_sync;

// The description of an error.
typedef struct wrote_error wrote_error;

// A plain line file. Any number of threads may call its functions at any time, except for
// wrote_lines_free().
typedef struct wrote_lines wrote_lines;

// An append-only log in a folder. Any number of threads may call its functions at any time, except
// for wrote_log_free().
typedef struct wrote_log wrote_log;

// A reader of the records of a log, in order. It takes no lock, and sees the records of every
// process.
typedef struct wrote_log_reader wrote_log_reader;

// A reader of a file from start to end, as a replacement for fopen(3) and fread(3). If a long file
// is not in the page cache, reads bypass the cache, with several of them in flight.
typedef struct wrote_reader wrote_reader;

// The promise for one record, or for a group of records. A ticket does not keep its log open.
typedef struct wrote_ticket wrote_ticket;

// An eventfd(2) that a log uses to wake an event loop. It serves any number of tickets. Any thread
// may use it at any time, except for wrote_wakeup_free().
typedef struct wrote_wakeup wrote_wakeup;

// A writer of a file from start to end, as a replacement for fopen(3), fwrite(3) and fclose(3).
//
// Bytes go into buffers (at most 8 MiB, for a file of any size), and from there to the file in the
// background. An error in the background is returned by the next call and by every later one.
typedef struct wrote_writer wrote_writer;

// Options of a writer. Write `wrote_writer_options options = { sizeof options };`, and then set
// the options that you want. 0 means the default.
typedef struct {
  // sizeof(wrote_writer_options).
  size_t size;
  // The expected length, in bytes. The space is reserved when the file is opened, so that a lack
  // of space is detected at once.
  uint64_t size_hint;
  // One of enum wrote_sync.
  uint32_t sync;
  // The interval of WROTE_SYNC_INTERVAL.
  uint32_t sync_interval_ms;
  // The permissions of a new file, less the umask. 0 means 0666.
  uint32_t mode;
  // Whether an existing name is an error (EEXIST).
  bool create_new;
  // Whether to write through the page cache, for a file that is soon read again and need not be
  // durable.
  bool cached;
  // Whether wrote_writer_finish() replaces the file at the path with the new one, like
  // wrote_write() but for content of any size. After a crash at any moment, the file has either
  // its old content or the new. A process that is killed before it finishes the file leaves a
  // file ".NAME.wrote-PROCESS-NUMBER" in the folder, which `wrote clean` removes.
  bool replace;
  // Whether to append to the file, or create it. The file is locked (flock(2)): opening a second
  // writer fails after waiting for a second. Programs that share a file should use a wrote_log.
  bool append;
} wrote_writer_options;

// The result of a writer.
typedef struct {
  // The file's length, in bytes.
  uint64_t bytes;
  // The time from opening the file until it was finished, in nanoseconds.
  uint64_t elapsed_ns;
  // Whether the file was written bypassing the page cache.
  bool direct;
  // Whether the file and its name are on stable storage.
  bool durable;
} wrote_written;

// The limits of atomic writes to a file (RWF_ATOMIC, pwritev2(2)): after a power loss, each is
// either complete or absent. The length of an atomic write is a power of two, and divides its
// offset.
typedef struct {
  // The minimum and the maximum length, in bytes.
  uint32_t bytes_min;
  uint32_t bytes_max;
  // The maximum length that the device itself writes atomically, in bytes; 0 if it can't.
  uint32_t device_bytes_max;
  // The maximum number of buffers in one write.
  uint32_t segments_max;
} wrote_atomic;

// A record that is lent until the reader's next call.
typedef struct {
  // The bytes, which are not terminated by a NUL. NULL if there is no record.
  const void *data;
  // The number of bytes.
  size_t len;
  // The record's sequence: 0 for the first record ever.
  uint64_t sequence;
  // When the log submitted the record to the disk, in nanoseconds since 1970, by the writer's
  // clock. 0 if unknown, as after a repair.
  uint64_t written_at_ns;
} wrote_record;

// Options of a log. Write `wrote_log_options options = { sizeof options };`, and then set the
// options that you want. 0 means the default.
typedef struct {
  // sizeof(wrote_log_options).
  size_t size;
  // The approximate length of a segment, in bytes. 0 means 64 MiB.
  uint64_t segment_bytes;
  // The maximum size of the log on disk, in bytes. Beyond it, the oldest segments are removed. 0
  // means no limit.
  uint64_t retain_bytes;
  // The minimum age, in seconds, at which the log removes records. 0 means that it keeps them
  // forever.
  uint64_t retain_age_s;
  // The size of each buffer, in bytes. A record must fit. 0 means 1 MiB.
  size_t buffer_bytes;
  // The number of buffers. 0 means 8.
  uint32_t buffers;
  // One of enum wrote_sync.
  uint32_t sync;
  // The interval of WROTE_SYNC_INTERVAL.
  uint32_t sync_interval_ms;
  // The permissions of a new log's files, less the umask. 0 means 0666.
  uint32_t mode;
} wrote_log_options;

// The figures of a log.
typedef struct {
  // The number of records found when the log was opened.
  uint64_t found_records;
  // The number of bytes that were found after the last complete record when the log was opened.
  // A crash interrupted their write.
  uint64_t torn_bytes;
  // The sequence of the first record that still exists.
  uint64_t first_sequence;
  // The sequence of the next record.
  uint64_t next_sequence;
  // The sequence before which every record survives a crash of the process.
  uint64_t written_sequence;
  // The sequence before which every record survives a power loss.
  uint64_t durable_sequence;
  // The number of batches written.
  uint64_t batches;
  // The number of flushes, including writes that were themselves durable.
  uint64_t flushes;
  // The total time of these flushes, in nanoseconds.
  uint64_t flush_time_ns;
  // The number of bytes written to segments, including the padding of blocks.
  uint64_t written_bytes;
  // The number of the written bytes that have been flushed.
  uint64_t flushed_bytes;
  // The number of segments begun.
  uint64_t segments;
  // The number of segments that retention has removed.
  uint64_t removed;
  // Whether, when the log was opened, it had been closed properly.
  bool found_closed;
} wrote_log_stats;

// Options of a line file. Write `wrote_lines_options options = { sizeof options };`, and then set
// the options that you want. 0 means the default.
typedef struct {
  // sizeof(wrote_lines_options).
  size_t size;
  // The maximum number of bytes that are collected while earlier lines are written. A line must
  // fit. 0 means 1 MiB.
  size_t buffer_bytes;
  // One of enum wrote_sync.
  uint32_t sync;
  // The interval of WROTE_SYNC_INTERVAL.
  uint32_t sync_interval_ms;
  // The permissions of a new file, less the umask. 0 means 0666.
  uint32_t mode;
  // Whether opening waits until another writer has closed the file. Otherwise, it fails if there
  // is one.
  bool waits;
} wrote_lines_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library, such as "0.1.0". The string must not be freed. Any thread
// may call this function.
const char *wrote_version(void);

// Returns the kind of an error.
wrote_kind wrote_error_kind(const wrote_error *error);

// Returns the number of an error, as in errno.h. The failed call also returned this number. It is
// the kernel's number or, if the library itself refused, the nearest one (EBUSY, EISDIR, EINVAL,
// EMSGSIZE, EIO, ESTALE, EPERM, EINTR).
int wrote_error_errno(const wrote_error *error);

// Returns the file or folder that an error concerns, or NULL. The string lives as long as the
// error.
const char *wrote_error_path(const wrote_error *error);

// Returns the file offset at which the operation failed, or -1 if there is none.
int64_t wrote_error_offset(const wrote_error *error);

// Returns a line of text for people, with the path, action, offset and the kernel's message. The
// string lives as long as the error.
const char *wrote_error_message(const wrote_error *error);

// Frees the description of an error.
void wrote_error_free(wrote_error *error);

// Opens a writer that creates the file, or truncates an existing one, like fopen(3) with "w",
// unless `replace` or `append` is set in the options.
//
// After wrote_writer_flush(), the bytes survive a crash of the process. After wrote_writer_sync()
// and wrote_writer_finish(), they survive a power loss, with the name of a new file. A crash
// before these calls may leave any part of the file. With `replace`, however, the old content is
// kept until the new file is complete.
//
// `options` may be NULL. Any thread may call this function at any time.
int wrote_writer_open(const char *to,
                      const wrote_writer_options *how,
                      wrote_writer **writer,
                      wrote_error **error);

// Writes all bytes, at first only into the writer's buffer, where they survive nothing. Waits only
// while all buffers are in flight.
int wrote_writer_write(wrote_writer *writer, const void *data, size_t len, wrote_error **error);

// Writes the bytes of all pieces in order, as if they were one. With WROTE_SYNC_ALWAYS, there is
// only one sync.
int wrote_writer_writev(wrote_writer *writer,
                        const struct iovec *pieces,
                        size_t count,
                        wrote_error **error);

// Writes all bytes to the file, where other programs can read them, and waits until they have been
// written. They then survive a crash of the process. A file that is to replace another does not
// have its name yet.
int wrote_writer_flush(wrote_writer *writer, wrote_error **error);

// Makes earlier writes durable, with the name of a new file. Only wrote_writer_finish() replaces
// an existing file.
int wrote_writer_sync(wrote_writer *writer, wrote_error **error);

// Writes the rest, and makes the file and its name durable. With `replace`, this is the moment at
// which the new file replaces the old one. Returns the first error since the file was opened;
// after an error, the old file is unchanged.
//
// After this call, even if it fails, the writer can't be used any more. Call wrote_writer_free()
// afterwards. `written` may be NULL.
int wrote_writer_finish(wrote_writer *writer, wrote_written *written, wrote_error **error);

// Like wrote_writer_finish(), but without flushing the device: the file survives only a crash of
// the process.
int wrote_writer_close(wrote_writer *writer, wrote_written *written, wrote_error **error);

// Frees a writer. If it has not been finished or closed, it is abandoned: a file that it created
// is removed, a file that it was to replace is unchanged, and a file to which it appended keeps
// what has been written so far.
void wrote_writer_free(wrote_writer *writer);

// Replaces the content of the file at `to`, or creates the file. The content is durable when this
// returns.
//
// After a crash of the process or the kernel, or a power loss, at any moment, the file has either
// its old content or the new, and other processes see one or the other. The new file gets the
// permissions, owner and attributes of the old one; symbolic links are followed and kept. EBUSY
// means that the file is a mount point, as single files in containers sometimes are, and so can't
// be replaced.
//
// Any thread may call this function at any time.
int wrote_write(const char *to, const void *data, size_t len, wrote_error **error);

// Creates a new file at `to` with this content, complete and durable. If the name exists, returns
// EEXIST and leaves that file unchanged.
//
// Any thread may call this function at any time.
int wrote_write_new(const char *to, const void *data, size_t len, wrote_error **error);

// Copies the file `from` to `to`, which must not exist yet. The copy gets its name only once it is
// complete, and is durable when this returns. It shares the blocks of `from` if the file system
// supports that. Stores the number of bytes in `len`, which may be NULL.
//
// Any thread may call this function at any time.
int wrote_copy(const char *from, const char *to, uint64_t *len, wrote_error **error);

// Stores the limits of atomic writes to the file at `path`. EOPNOTSUPP means that atomic writes
// are not supported; the error's message gives the reason.
//
// Any thread may call this function at any time.
int wrote_atomic_writes(const char *path, wrote_atomic *writes, wrote_error **error);

// Opens a file for reading. Any thread may call this function at any time.
int wrote_reader_open(const char *from, wrote_reader **reader, wrote_error **error);

// Reads up to `room` bytes into `into`, and stores their number in `len`: 0 at the end of the
// file. If the file has grown, a later call continues there.
int wrote_reader_read(wrote_reader *reader,
                      void *into,
                      size_t room,
                      size_t *len,
                      wrote_error **error);

// Reads a line, without its line feed. At the end of the file, `line` is set to NULL; otherwise,
// the line lives until the reader's next call. It is not terminated by a NUL, and may contain
// NULs.
int wrote_reader_line(wrote_reader *reader, const char **line, size_t *len, wrote_error **error);

// Continues at this offset in the file.
int wrote_reader_seek(wrote_reader *reader, uint64_t offset, wrote_error **error);

// Frees a reader.
void wrote_reader_free(wrote_reader *reader);

// Opens the log in a folder for reading, from record `from`, or from the first later one that
// exists, to its end. If `follows` is set, the reader waits at the end for further records, and
// waits for the log to be created if it does not exist yet.
int wrote_log_reader_open(const char *folder,
                          uint64_t from,
                          bool follows,
                          wrote_log_reader **reader,
                          wrote_error **error);

// Reads the next record. At the end, `record->data` is NULL and `record->len` is 0. A reader that
// follows first waits up to `timeout_ms` milliseconds, or without a limit if that is negative. The
// pointer to an empty record is not NULL.
int wrote_log_reader_next(wrote_log_reader *reader,
                          int64_t timeout_ms,
                          wrote_record *record,
                          wrote_error **error);

// Continues with record `sequence`, or with the first later one that exists.
int wrote_log_reader_seek(wrote_log_reader *reader, uint64_t sequence, wrote_error **error);

// Continues with the first record written at this time or later, in nanoseconds since 1970.
int wrote_log_reader_seek_time(wrote_log_reader *reader, uint64_t time_ns, wrote_error **error);

// Returns the number of records that the reader has skipped since it was opened, because
// retention, a trim or a repair had removed them.
uint64_t wrote_log_reader_passed_over(const wrote_log_reader *reader);

// Frees a reader.
void wrote_log_reader_free(wrote_log_reader *reader);

// Opens the log in a folder, and creates the folder and the log if they are missing. A second
// writer is refused, whether in this process or in another. `options` may be NULL. Any thread may
// call this function at any time.
int wrote_log_open(const char *folder,
                   const wrote_log_options *how,
                   wrote_log **log,
                   wrote_error **error);

// Appends a record: copies its bytes, and assigns its sequence. The record is only in memory when
// this returns. Waits only while all buffers are in flight.
//
// `sequence` and `ticket` may be NULL. Without a ticket, the record is written within about 10 ms,
// and wrote_log_sync() makes it durable. Free a ticket with wrote_ticket_free().
int wrote_log_append(const wrote_log *log,
                     const void *record,
                     size_t len,
                     uint64_t *sequence,
                     wrote_ticket **ticket,
                     wrote_error **error);

// Appends a record, and waits until it is as safe as the log promises. With WROTE_SYNC_ALWAYS, the
// record and every record before it then survive a power loss; otherwise, they survive a crash of
// the process. Threads that wait at the same time share a flush. `sequence` may be NULL.
int wrote_log_append_wait(const wrote_log *log,
                          const void *record,
                          size_t len,
                          uint64_t *sequence,
                          wrote_error **error);

// Appends consecutive records. After a crash, either all of them exist or none does. Together they
// must fit into one buffer. Stores the first record's sequence in `sequence`, and a ticket for all
// of the records in `ticket`. Both may be NULL.
int wrote_log_append_all(const wrote_log *log,
                         const struct iovec *records,
                         size_t count,
                         uint64_t *sequence,
                         wrote_ticket **ticket,
                         wrote_error **error);

// Creates a ticket for a record that any caller has appended. The ticket waits until the record is
// as safe as the log promises. Free it with wrote_ticket_free().
int wrote_log_ticket(const wrote_log *log,
                     uint64_t sequence,
                     wrote_ticket **ticket,
                     wrote_error **error);

// Makes every record appended so far durable, whatever the log's sync policy.
int wrote_log_sync(const wrote_log *log, wrote_error **error);

// Durably removes the segments whose records are all before `sequence`. Stores the sequence of the
// first remaining record in `first`, which may be NULL.
int wrote_log_trim_before(const wrote_log *log,
                          uint64_t sequence,
                          uint64_t *first,
                          wrote_error **error);

// Durably removes record `sequence` and all later ones. The next record gets that sequence.
int wrote_log_truncate_from(const wrote_log *log, uint64_t sequence, wrote_error **error);

// Stores in `survives` the worst event that a record currently survives.
int wrote_log_survives(const wrote_log *log,
                       uint64_t sequence,
                       wrote_survives *survives,
                       wrote_error **error);

// Stores the log's figures in the first `size` bytes of `stats`. Pass sizeof(wrote_log_stats).
int wrote_log_get_stats(const wrote_log *log,
                        wrote_log_stats *stats,
                        size_t size,
                        wrote_error **error);

// Closes the log: writes all records, makes them durable, and marks the log as closed. Returns the
// first error since the log was opened. Later appends by any thread are refused. Call
// wrote_log_free() afterwards.
int wrote_log_close(const wrote_log *log, wrote_error **error);

// Frees a log. No other thread may be in a call with it, but its tickets and readers may outlive
// it. If it has not been closed, it is closed first, and an error in closing it is lost. To see
// such an error, call wrote_log_close() first.
void wrote_log_free(wrote_log *log);

// Creates a wakeup. Free it with wrote_wakeup_free().
int wrote_wakeup_open(wrote_wakeup **wakeup, wrote_error **error);

// Returns the descriptor to wait for, with poll(2), epoll(7) or io_uring(7). When it is readable,
// call wrote_wakeup_clear(), and then poll the tickets again. The wakeup owns the descriptor; do
// not close it. Returns -1 for NULL.
int wrote_wakeup_fd(const wrote_wakeup *wakeup);

// Makes the descriptor unreadable again. Call this before polling the tickets.
void wrote_wakeup_clear(const wrote_wakeup *wakeup);

// Frees a wakeup. Tickets that were polled with it may outlive it.
void wrote_wakeup_free(wrote_wakeup *wakeup);

// Returns the sequence of the ticket's record, or of the last record of its group.
uint64_t wrote_ticket_sequence(const wrote_ticket *ticket);

// Makes the ticket wait until its record survives a power loss, whatever its log promises. Must be
// called before the first wait or poll; after that, it has no effect.
int wrote_ticket_until_durable(wrote_ticket *ticket, wrote_error **error);

// Waits until the record is as safe as its log promises. With WROTE_SYNC_ALWAYS, it and every
// record before it then survive a power loss; otherwise, they survive a crash of the process.
//
// WROTE_KIND_NOT_YET means that the disk is full, and the record may still be written. Use
// wrote_log_ticket() to wait for it again. Any other error is final: the record is not safe.
int wrote_ticket_wait(wrote_ticket *ticket, wrote_error **error);

// Checks without waiting, and sets `done` to whether the record is as safe as described for
// wrote_ticket_wait(). If it is not, the wakeup's descriptor becomes readable when it is worth
// checking again.
int wrote_ticket_poll(wrote_ticket *ticket,
                      const wrote_wakeup *wakeup,
                      bool *done,
                      wrote_error **error);

// Frees a ticket. Its record is still written.
void wrote_ticket_free(wrote_ticket *ticket);

// Opens a line file, or creates it. If a crash has left a torn end, the end is moved to
// NAME.torn-0 (or the next free number). A second writer is refused. `options` may be NULL.
int wrote_lines_open(const char *file,
                     const wrote_lines_options *how,
                     wrote_lines **lines,
                     wrote_error **error);

// Appends a line, which must not contain a line feed: copies its bytes, and adds a line feed.
//
// `ticket` may be NULL. Without a ticket, the line is written within about 10 ms, and
// wrote_lines_flush() makes it durable. Free a ticket with wrote_ticket_free().
int wrote_lines_append(const wrote_lines *lines,
                       const void *line,
                       size_t len,
                       wrote_ticket **ticket,
                       wrote_error **error);

// Appends a line, and waits until it survives a power loss (WROTE_SYNC_ALWAYS, the default), or
// otherwise a crash of the process. Threads that wait at the same time share a flush.
int wrote_lines_append_wait(const wrote_lines *lines,
                            const void *line,
                            size_t len,
                            wrote_error **error);

// Makes every line appended so far durable.
int wrote_lines_flush(const wrote_lines *lines, wrote_error **error);

// Reopens the path; to be called after another program has renamed the file. Makes all earlier
// lines durable first.
int wrote_lines_reopen(const wrote_lines *lines, wrote_error **error);

// Makes all lines durable, and closes the file. Later appends by any thread are refused. Call
// wrote_lines_free() afterwards.
int wrote_lines_close(const wrote_lines *lines, wrote_error **error);

// Frees a line file. No other thread may be in a call with it. If it has not been closed, it is
// closed first, and an error in closing it is lost.
void wrote_lines_free(wrote_lines *lines);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WROTE_H */
