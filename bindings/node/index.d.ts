import type { PathLike } from 'node:fs'
import type { Writable } from 'node:stream'

/** Content: text, in UTF-8 unless there is an `encoding`, or bytes, without a copy. Leave them alone until the call ends. */
export type Data = string | NodeJS.ArrayBufferView

/** The worst event that a record survives. */
export type Survives = 'nothing' | 'process-crash' | 'os-crash' | 'power-loss'

/** When writes become durable by themselves: a word of Redis, or milliseconds. */
export type Sync = 'always' | 'everysec' | 'no' | number

/** An error of the library, with the properties of those of `node:fs`. */
export interface WroteError extends Error {
  /** The kernel's name of the error, such as `'ENOENT'`. */
  code: string
  /** Its number, negative. */
  errno: number
  /** The file or folder. */
  path?: string
  /** The byte of the file at which the operation failed. */
  offset?: number
  /**
   * What failed. `'Refused'` with the code `EBUSY`: another writer has the log or file open.
   * `'TooLong'`: the record does not fit into `bufferBytes`. `'NotYet'`: the disk is full, and the log keeps the record: wait for `sequence`
   * again, and do not append it again.
   */
  kind:
    | 'File' | 'NotYet' | 'Poisoned' | 'Alignment' | 'TooLong' | 'Refused' | 'Interfered'
    | 'Truncated' | 'Differs' | 'Damaged' | 'Foreign' | 'Interrupted' | 'Forked' | 'Engine' | 'Other'
  /** The record that a promise of a log was for. */
  sequence?: number
}

/** The library's version. */
export const version: string

export interface SaveOptions {
  /** `false`: the content survives a crash of the process alone. Default: `true`. */
  durable?: boolean
  /** Of text. Default: `'utf8'`. */
  encoding?: BufferEncoding
  /** Refuses a call that has not begun. */
  signal?: AbortSignal
}

/**
 * Replaces the content of the file at `path`, or creates the file.
 *
 * After a crash of the process or the kernel or a power loss, at any moment, the file has either
 * its old content or the new, and other processes see one or the other. When the promise is
 * fulfilled, the new content survives a power loss.
 *
 * The new file gets the old one's permissions, owner and attributes; symbolic links are followed
 * and kept. `EBUSY`: the file is a mount point, as single files in containers are.
 */
export function write(
  path: PathLike, data: Data, options?: SaveOptions | BufferEncoding,
): Promise<void>
/** Like `write`, on the event loop's own thread. */
export function writeSync(
  path: PathLike, data: Data, options?: Omit<SaveOptions, 'signal'> | BufferEncoding,
): void

/** Creates a new file, complete and durable. An existing name is `EEXIST`, and keeps its file. */
export function writeNew(
  path: PathLike, data: Data, options?: Omit<SaveOptions, 'durable'> | BufferEncoding,
): Promise<void>
/** Like `writeNew`, on the event loop's own thread. */
export function writeNewSync(
  path: PathLike, data: Data, options?: { encoding?: BufferEncoding } | BufferEncoding,
): void

/**
 * Copies a file to a name that must not exist yet, and returns the number of its bytes. The copy is
 * durable when the promise is fulfilled, and has its name only once it is whole.
 */
export function copy(
  source: PathLike, target: PathLike, options?: { signal?: AbortSignal },
): Promise<number>
/** Like `copy`, on the event loop's own thread. */
export function copySync(source: PathLike, target: PathLike): number

export interface WriterOptions {
  /** `false`: at its end the file survives a crash of the process alone. Default: `true`. */
  durable?: boolean
  /** Of text that is written without one. Default: `'utf8'`. */
  encoding?: BufferEncoding
  /** Destroys the stream, and so abandons the file. */
  signal?: AbortSignal
  /** Permissions of a new file; of `replace`, also instead of the old file's. */
  mode?: number
  /** How many bytes the stream holds before `write` returns `false`. */
  highWaterMark?: number
}

export interface ReplaceOptions extends WriterOptions {
  /** `'wx'`: an existing name is `EEXIST`. Default: `'w'`. */
  flags?: 'w' | 'wx'
  /** How many bytes to reserve at once. */
  sizeHint?: number
}

export interface AppendOptions extends WriterOptions {
  flags?: 'a'
  /** Makes bytes durable on the way. Default: `'no'`. */
  sync?: Sync
}

export interface CreateOptions extends ReplaceOptions {
  /** Makes bytes durable on the way. Default: `'no'`. */
  sync?: Sync
  /** `false`: writes through the page cache. Default: `true`. */
  direct?: boolean
}

/**
 * The writes to a file that a power loss leaves whole or not done (`RWF_ATOMIC`). Their length is a
 * power of two, and divides their offset.
 */
export interface AtomicWrites {
  /** The shortest, in bytes. */
  bytesMin: number
  /** The longest, in bytes. */
  bytesMax: number
  /** The longest that the device itself keeps whole, in bytes; 0 if none. */
  deviceBytesMax: number
  /** The most buffers of one write. */
  segmentsMax: number
}

/** Returns the atomic writes to a file; throws `ENOTSUP` with the reason if there are none. */
export function atomicWrites(path: PathLike): AtomicWrites

/** The result of a stream. */
export interface Written {
  /** The file's length. */
  bytes: number
  /** Milliseconds from the opening to the end. */
  elapsed: number
  /** Whether the file was written past the page cache. */
  direct: boolean
  /** Whether the file and its name are on stable storage. */
  durable: boolean
}

/**
 * A stream into one file. `end()`, and `pipeline()` at its success, put the file in place; then
 * `'finish'` is emitted. `destroy()`, an error, and a process that exits before abandon it: the old
 * file stays. Only a kill leaves a file `.NAME.wrote-PROCESS-NUMBER`, which `wrote clean` removes.
 */
export class Writer extends Writable {
  private constructor()
  readonly path: PathLike
  /** Bytes taken so far. */
  readonly bytesWritten: number
  /** Ends the stream, and waits until the file is durable and in place. */
  commit(): Promise<Written>
  /** Waits until all earlier bytes survive a crash of the process, for `create` and `append`. */
  flush(): Promise<void>
  /** Waits until all earlier bytes survive a power loss, for `create` and `append`. */
  sync(): Promise<void>
  /** `await using`: abandons the file at the end of its scope, unless it was committed. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Makes a stream whose file takes the place of the one at `path` at its end. Until then, and after
 * a crash at any moment, the old file stays as it is; readers see the old content or the new.
 * Permissions, owner, attributes and symbolic links are kept.
 */
export function replace(path: PathLike, options?: ReplaceOptions | BufferEncoding): Writer
/** Makes a stream into a new or emptied file. A crash before its end leaves any part of it. */
export function create(path: PathLike, options?: CreateOptions | BufferEncoding): Writer
/** Makes a stream that appends to a file. One process at a time: the file is locked. */
export function append(path: PathLike, options?: AppendOptions | BufferEncoding): Writer

export interface LogOptions {
  /**
   * What a record survives when its promise is fulfilled: with `'always'`, the default, a power
   * loss, and so does every record before it; else a crash of the process.
   */
  sync?: Sync
  /** Length of a segment. Default: 64 MiB. */
  segmentBytes?: number
  /** Removes the oldest segments beyond this length. */
  retainBytes?: number
  /** Removes segments of this age in milliseconds. */
  retainAge?: number
  /** Number of buffers. Default: 8. */
  buffers?: number
  /** Length of a buffer, into which a record must fit. Default: 1 MiB. */
  bufferBytes?: number
  /** Permissions of new files. */
  mode?: number
}

/** Figures of a log since its opening; times in milliseconds. */
export interface Stats {
  foundRecords: number
  foundClosed: boolean
  tornBytes: number
  firstSequence: number
  nextSequence: number
  /** Every record before this one survives a crash of the process. */
  writtenSequence: number
  /** Every record before this one survives a power loss. */
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
  /** 0 for the first record ever. */
  sequence: number
  data: Buffer
  /** When the log handed it to the disk; `null` after a repair. */
  writtenAtMs: number | null
}

export interface ReaderOptions {
  /** The first record, or the first later one that is left. Default: 0. */
  start?: number
  /** Waits at the end for further records. */
  follow?: boolean
  /** Ends the reading, with the signal's reason as the error. */
  signal?: AbortSignal
}

/** An append-only log in a folder. No call blocks the event loop, and no promise has a thread. */
export class Log {
  private constructor()
  readonly path: string
  readonly closed: boolean
  /**
   * Appends a record, whose bytes are taken at once. The promise is fulfilled with its sequence
   * when the record is as safe as the log promises. Records are in the order of the calls, and
   * promises that wait at the same time share a flush.
   */
  append(record: Data): Promise<number>
  /** Appends records of which all or none exist after a crash. They must fit into one buffer. */
  appendAll(records: Iterable<Data>): Promise<{ first: number, last: number }>
  /** Waits for a record that was appended; with `durable` until it survives a power loss. */
  wait(sequence: number, options?: { durable?: boolean }): Promise<number>
  /** Makes every record durable that was appended until now. */
  sync(): Promise<void>
  /** Removes segments whose records are all before `sequence`. Returns the first that is left. */
  trimBefore(sequence: number): Promise<number>
  /** Removes record `sequence` and all later ones. The next record gets that sequence. */
  truncateFrom(sequence: number): Promise<void>
  /** Returns what a record survives now. */
  survives(sequence: number): Survives
  stats(): Stats
  /** Reads the log; with `follow` until it is closed. */
  reader(options?: ReaderOptions): AsyncGenerator<Record, void, void>
  /** Ends the log: makes all records durable, and marks the log as closed. */
  close(): Promise<void>
  /** `await using`: closes the log at the end of its scope. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface LinesOptions {
  /** What the promise of a line means: with `'always'`, the default, that it survives a power loss. */
  sync?: Sync
  /** The bytes of lines that are collected, into which a line must fit. Default: 1 MiB. */
  bufferBytes?: number
  /** Permissions of a new file. */
  mode?: number
  /** Waits until another writer has closed the file. Default: it is refused. */
  waits?: boolean
}

/** A plain file of lines, which every tool reads. */
export class Lines {
  private constructor()
  readonly path: PathLike
  /** Appends a line, without a line feed in it. Its promise is fulfilled when the line is safe. */
  append(line: Data): Promise<void>
  /** Makes every line durable that was appended until now. */
  flush(): Promise<void>
  /** Opens the path anew, after another program has renamed the file. */
  reopen(): Promise<void>
  /** Makes all lines durable, and releases the file. */
  close(): Promise<void>
  /** `await using`: closes the file at the end of its scope. */
  [Symbol.asyncDispose](): Promise<void>
}

/** Opens a file of lines, or makes it. The end that a crash tore is moved to `NAME.torn-0`. */
export function lines(path: PathLike, options?: LinesOptions): Promise<Lines>

/** Opens the log in a folder, or makes both. One writer at a time. */
export function openLog(path: PathLike, options?: LogOptions): Promise<Log>

/**
 * Reads the log in a folder while any process writes it. With `follow` it waits for further
 * records, and for a log that is not there yet.
 */
export function readLog(
  path: PathLike,
  options?: ReaderOptions & {
    /** Begins with the first record that was written at this time or later. */
    since?: Date | number,
  },
): AsyncGenerator<Record, void, void>
