import type { PathLike } from 'node:fs'
import type { Writable } from 'node:stream'

/**
 * Content: bytes, or text, which is encoded as UTF-8 unless an `encoding` is given. Bytes are not
 * copied, so do not change them until the call has finished.
 */
export type Data = string | NodeJS.ArrayBufferView

/** The worst event that a record survives. */
export type Survives = 'nothing' | 'process-crash' | 'os-crash' | 'power-loss'

/** When writes become durable automatically: a name used by Redis, or milliseconds. */
export type Sync = 'always' | 'everysec' | 'no' | number

/** An error of the library, with the same properties as the errors of `node:fs`. */
export interface WroteError extends Error {
  /** The kernel's name of the error, such as `'ENOENT'`. */
  code: string
  /** The error number, negated. */
  errno: number
  /** The file or folder that the error concerns. */
  path?: string
  /** The file offset at which the operation failed. */
  offset?: number
  /**
   * What failed. `'Refused'` with the code `EBUSY` means that another writer has the log or file
   * open. `'TooLong'` means that the record does not fit into `bufferBytes`. `'NotYet'` means that
   * the disk is full and the log keeps the record: wait for `sequence` again instead of appending
   * the record again.
   */
  kind:
    | 'File' | 'NotYet' | 'Poisoned' | 'Alignment' | 'TooLong' | 'Refused' | 'Interfered'
    | 'Truncated' | 'Differs' | 'Damaged' | 'Foreign' | 'Interrupted' | 'Forked' | 'Engine' | 'Other'
  /** The sequence of the record for which the promise was made. */
  sequence?: number
}

/** The library's version. */
export const version: string

export interface SaveOptions {
  /** If `false`, the content survives only a crash of the process. Default: `true`. */
  durable?: boolean
  /** The encoding of text. Default: `'utf8'`. */
  encoding?: BufferEncoding
  /** Cancels a call that has not begun. */
  signal?: AbortSignal
}

/**
 * Replaces the content of the file at `path`, or creates the file.
 *
 * After a crash of the process or the kernel, or a power loss, at any moment, the file has either
 * its old content or the new, and other processes see one or the other. When the promise is
 * fulfilled, the new content survives a power loss.
 *
 * The new file gets the permissions, owner and attributes of the old one; symbolic links are
 * followed and kept. `EBUSY` means that the file is a mount point, as single files in containers
 * sometimes are.
 */
export function write(
  path: PathLike, data: Data, options?: SaveOptions | BufferEncoding,
): Promise<void>
/** Like `write`, but on the event loop's own thread. */
export function writeSync(
  path: PathLike, data: Data, options?: Omit<SaveOptions, 'signal'> | BufferEncoding,
): void

/**
 * Creates a new file, complete and durable. If the name exists, fails with `EEXIST` and leaves that
 * file unchanged.
 */
export function writeNew(
  path: PathLike, data: Data, options?: Omit<SaveOptions, 'durable'> | BufferEncoding,
): Promise<void>
/** Like `writeNew`, but on the event loop's own thread. */
export function writeNewSync(
  path: PathLike, data: Data, options?: { encoding?: BufferEncoding } | BufferEncoding,
): void

/**
 * Copies a file to a name that must not exist yet, and returns the number of bytes. The copy gets
 * its name only once it is complete, and is durable when the promise is fulfilled.
 */
export function copy(
  source: PathLike, target: PathLike, options?: { signal?: AbortSignal },
): Promise<number>
/** Like `copy`, but on the event loop's own thread. */
export function copySync(source: PathLike, target: PathLike): number

export interface WriterOptions {
  /** If `false`, the finished file survives only a crash of the process. Default: `true`. */
  durable?: boolean
  /** The encoding of text that is written without one. Default: `'utf8'`. */
  encoding?: BufferEncoding
  /** Destroys the stream, which abandons the file. */
  signal?: AbortSignal
  /** The permissions of a new file. With `replace`, they also override those of the old file. */
  mode?: number
  /** The number of bytes that the stream holds before `write` returns `false`. */
  highWaterMark?: number
}

export interface ReplaceOptions extends WriterOptions {
  /** With `'wx'`, an existing name is an error, `EEXIST`. Default: `'w'`. */
  flags?: 'w' | 'wx'
  /** The number of bytes to reserve when the file is opened. */
  sizeHint?: number
}

export interface AppendOptions extends WriterOptions {
  flags?: 'a'
  /** When written bytes become durable before the end. Default: `'no'`. */
  sync?: Sync
}

export interface CreateOptions extends ReplaceOptions {
  /** When written bytes become durable before the end. Default: `'no'`. */
  sync?: Sync
  /** If `false`, writes through the page cache. Default: `true`. */
  direct?: boolean
}

/**
 * The limits of atomic writes to a file (`RWF_ATOMIC`): after a power loss, each is either complete
 * or absent. The length of an atomic write is a power of two, and divides its offset.
 */
export interface AtomicWrites {
  /** The minimum length, in bytes. */
  bytesMin: number
  /** The maximum length, in bytes. */
  bytesMax: number
  /** The maximum length that the device itself writes atomically, in bytes; 0 if it can't. */
  deviceBytesMax: number
  /** The maximum number of buffers in one write. */
  segmentsMax: number
}

/**
 * Returns the limits of atomic writes to a file. Throws `ENOTSUP` with the reason if there are
 * none.
 */
export function atomicWrites(path: PathLike): AtomicWrites

/** The result of a stream. */
export interface Written {
  /** The file's length, in bytes. */
  bytes: number
  /** The time from opening the file until it was finished, in milliseconds. */
  elapsed: number
  /** Whether the file was written bypassing the page cache. */
  direct: boolean
  /** Whether the file and its name are on stable storage. */
  durable: boolean
}

/**
 * A stream that writes a file. `end()`, or the success of `pipeline()`, gives the file its name,
 * and then `'finish'` is emitted. If `destroy()` is called, an error occurs or the process exits
 * before that, the file is abandoned and the old one is kept. Only a killed process leaves a file
 * `.NAME.wrote-PROCESS-NUMBER`, which `wrote clean` removes.
 */
export class Writer extends Writable {
  private constructor()
  readonly path: PathLike
  /** The number of bytes accepted so far. */
  readonly bytesWritten: number
  /** Ends the stream, and waits until the file is durable and has its name. */
  commit(): Promise<Written>
  /** Waits until all earlier bytes survive a crash of the process, for `create` and `append`. */
  flush(): Promise<void>
  /** Waits until all earlier bytes survive a power loss, for `create` and `append`. */
  sync(): Promise<void>
  /** For `await using`: abandons the file at the end of the scope, unless it was committed. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Creates a stream whose file replaces the one at `path` when the stream ends. Until then, and
 * after a crash at any moment, the old file is unchanged; readers see either the old content or the
 * new. Permissions, owner, attributes and symbolic links are kept.
 */
export function replace(path: PathLike, options?: ReplaceOptions | BufferEncoding): Writer
/**
 * Creates a stream that writes a new file, or truncates an existing one. A crash before the stream
 * has ended may leave any part of the file.
 */
export function create(path: PathLike, options?: CreateOptions | BufferEncoding): Writer
/**
 * Creates a stream that appends to a file. The file is locked, so only one process at a time can
 * append.
 */
export function append(path: PathLike, options?: AppendOptions | BufferEncoding): Writer

export interface LogOptions {
  /**
   * What a record survives once its promise is fulfilled. With `'always'`, the default, it and
   * every record before it survive a power loss; otherwise, they survive a crash of the process.
   */
  sync?: Sync
  /** The length of a segment, in bytes. Default: 64 MiB. */
  segmentBytes?: number
  /** The maximum length of the log, in bytes, beyond which the oldest segments are removed. */
  retainBytes?: number
  /** The age at which segments are removed, in milliseconds. */
  retainAge?: number
  /** The number of buffers. Default: 8. */
  buffers?: number
  /** The size of a buffer, in bytes. A record must fit. Default: 1 MiB. */
  bufferBytes?: number
  /** The permissions of new files. */
  mode?: number
}

/** Figures of a log since it was opened. Times are in milliseconds. */
export interface Stats {
  foundRecords: number
  foundClosed: boolean
  tornBytes: number
  firstSequence: number
  nextSequence: number
  /** The sequence before which every record survives a crash of the process. */
  writtenSequence: number
  /** The sequence before which every record survives a power loss. */
  durableSequence: number
  batches: number
  flushes: number
  flushTime: number
  writtenBytes: number
  flushedBytes: number
  segments: number
  removed: number
}

export interface Record {
  /** The record's sequence: 0 for the first record ever. */
  sequence: number
  data: Buffer
  /** When the log submitted the record to the disk; `null` after a repair. */
  writtenAtMs: number | null
}

export interface ReaderOptions {
  /**
   * The sequence of the first record to read; if it no longer exists, the first later one. Default:
   * 0.
   */
  start?: number
  /** Whether to wait at the end for further records. */
  follow?: boolean
  /** Stops the reader, with the signal's reason as the error. */
  signal?: AbortSignal
}

/** An append-only log in a folder. No call blocks the event loop, and no promise uses a thread. */
export class Log {
  private constructor()
  readonly path: string
  readonly closed: boolean
  /**
   * Appends a record, whose bytes are copied at once. The promise is fulfilled with its sequence
   * when the record is as safe as the log promises. Records are in the order of the calls, and
   * promises that wait at the same time share a flush.
   */
  append(record: Data): Promise<number>
  /**
   * Appends records. Appends the records atomically: after a crash, either all of them exist or
   * none does. Together they must fit into one buffer.
   */
  appendAll(records: Iterable<Data>): Promise<{ first: number, last: number }>
  /** Waits for a record that has been appended; with `durable`, until it survives a power loss. */
  wait(sequence: number, options?: { durable?: boolean }): Promise<number>
  /** Makes every record appended so far durable. */
  sync(): Promise<void>
  /**
   * Removes the segments whose records are all before `sequence`. Returns the sequence of the first
   * remaining record.
   */
  trimBefore(sequence: number): Promise<number>
  /** Removes record `sequence` and all later ones. The next record gets that sequence. */
  truncateFrom(sequence: number): Promise<void>
  /** Returns the worst event that a record currently survives. */
  survives(sequence: number): Survives
  stats(): Stats
  /** Reads the log; with `follow`, until the log is closed. */
  reader(options?: ReaderOptions): AsyncGenerator<Record, void, void>
  /** Closes the log: makes all records durable, and marks the log as closed. */
  close(): Promise<void>
  /** For `await using`: closes the log at the end of the scope. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface LinesOptions {
  /**
   * What a line survives once its promise is fulfilled. With `'always'`, the default, it survives a
   * power loss; otherwise, it survives a crash of the process.
   */
  sync?: Sync
  /**
   * The maximum number of bytes that are collected while others are written. A line must fit.
   * Default: 1 MiB.
   */
  bufferBytes?: number
  /** The permissions of a new file. */
  mode?: number
  /** Whether opening waits until another writer has closed the file. By default, it fails. */
  waits?: boolean
}

/** A plain line file, which every tool can read. */
export class Lines {
  private constructor()
  readonly path: PathLike
  /**
   * Appends a line, which must not contain a line feed. The promise is fulfilled when the line is
   * safe.
   */
  append(line: Data): Promise<void>
  /** Makes every line appended so far durable. */
  flush(): Promise<void>
  /** Reopens the path; to be called after another program has renamed the file. */
  reopen(): Promise<void>
  /** Makes all lines durable, and closes the file. */
  close(): Promise<void>
  /** For `await using`: closes the file at the end of the scope. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Opens a line file, or creates it. If a crash has left a torn end, it is moved to `NAME.torn-0`.
 */
export function lines(path: PathLike, options?: LinesOptions): Promise<Lines>

/**
 * Opens the log in a folder. Creates the folder and the log if they are missing. A log can have
 * only one writer at a time.
 */
export function openLog(path: PathLike, options?: LogOptions): Promise<Log>

/**
 * Reads the log in a folder while any process writes to it. With `follow`, waits for further
 * records, and for the log to be created if it does not exist yet.
 */
export function readLog(
  path: PathLike,
  options?: ReaderOptions & {
    /** Begins with the first record written at this time or later. */
    since?: Date | number,
  },
): AsyncGenerator<Record, void, void>
