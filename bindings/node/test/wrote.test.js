'use strict'

// Tests of the package. They expect it to be installed next to this file.

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { Readable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { afterEach, beforeEach, test } = require('node:test')
const { pathToFileURL } = require('node:url')
const { Worker } = require('node:worker_threads')
const wrote = require('wrote')

let folder, file

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'wrote-node-'))
  file = path.join(folder, 'file')
})

afterEach(() => fs.rmSync(folder, { recursive: true }))

const read = (name = file) => fs.readFileSync(name, 'utf8')
const names = () => fs.readdirSync(folder).sort()
/** Waits until a stream has closed its file, whether it finished or failed. */
const closed = (stream) => new Promise((resolve) => stream.once('close', resolve))

async function all(records) {
  const found = []
  for await (const record of records) found.push(record)
  return found
}

const texts = async (records) => (await all(records)).map(({ data }) => data.toString())

/** Runs a program in the folder, and returns what it printed to standard error. */
function run(code, status = 0, options = []) {
  const words = [...options, '-e', `const wrote = require(${JSON.stringify(require.resolve('wrote'))}); ${code}`]
  const ran = spawnSync(process.execPath, words, { cwd: folder, encoding: 'utf8', timeout: 60_000 })
  assert.equal(ran.status, status, ran.stderr)
  return ran.stderr
}

test('content is text or bytes of any kind', async () => {
  const bytes = Buffer.from('0view1')
  for (const [content, found] of [
    ['größe', 'größe'], ['', ''], [Buffer.from('bytes'), 'bytes'], [bytes.subarray(1, 5), 'view'],
    [new Uint16Array([0x4241]), 'AB'], [new DataView(new Uint8Array([65, 66, 67]).buffer, 1), 'BC'],
  ]) {
    await wrote.write(file, content)
    assert.equal(read(), found)
    wrote.writeSync(Buffer.from(file), content, { durable: false })
    assert.equal(read(), found)
  }
  await wrote.write(pathToFileURL(file), 'by URL')
  assert.equal(read(), 'by URL')
  for (const wrong of [7, null, [1], undefined]) {
    await assert.rejects(wrote.write(file, wrong), { code: 'ERR_INVALID_ARG_TYPE' })
    await assert.rejects(wrote.write(wrong, ''), { code: 'ERR_INVALID_ARG_TYPE' })
  }
  assert.equal(read(), 'by URL')
})

test('text has the encoding that was asked for', async () => {
  const found = () => fs.readFileSync(file, 'latin1')
  for (const options of ['latin1', { encoding: 'latin1' }]) {
    await wrote.write(file, 'größe', options)
    assert.equal(found(), 'größe')
    wrote.writeSync(file, 'weiß', options)
    assert.equal(found(), 'weiß')
    const stream = wrote.replace(file, options)
    stream.write('ü')
    stream.write('ü', 'utf8')
    await stream.commit()
    assert.equal(found(), 'ü\u00c3\u00bc')
  }
})

test('an unknown option is an error', async () => {
  for (const action of [
    () => wrote.write(file, '', { durabel: false }), () => wrote.writeNew(file, '', { durable: false }),
    () => wrote.copy(file, file, { mode: 1 }), async () => wrote.replace(file, { start: 5 }),
    async () => wrote.replace(file, { flags: 'a' }), async () => wrote.append(file, { sizeHint: 1 }),
    () => wrote.openLog(file, { buffer_bytes: 1 }), async () => wrote.readLog(file, { from: 1 }),
    () => wrote.write('a\0b', ''), async () => wrote.replace('a\0b'), async () => wrote.create(7), () => wrote.openLog('a\0b'),
  ]) await assert.rejects(action, ({ code }) => /^ERR_INVALID_ARG_/.test(code))
  assert.deepEqual(names(), [])
  await wrote.write(file, '', null)
  await wrote.append(file, { flags: 'a', mode: undefined }).commit()
})

test('a scope ends a stream and a log', { skip: !Symbol.asyncDispose }, async () => {
  const dispose = Symbol.asyncDispose
  fs.writeFileSync(file, 'old')
  const left = wrote.replace(file)
  left.write('half')
  await left[dispose]()
  assert.equal(read(), 'old')
  const committed = wrote.replace(file)
  committed.write('new')
  await committed.commit()
  await committed[dispose]()
  const log = await wrote.openLog(`${file}-log`)
  await log[dispose]()
  assert.ok(log.closed)
  assert.deepEqual([read(), names()], ['new', ['file', 'file-log']])
})

test('a new file never replaces one', async () => {
  await wrote.writeNew(file, '1')
  const exists = { code: 'EEXIST', errno: -17, path: file }
  await assert.rejects(wrote.writeNew(file, '2'), exists)
  assert.throws(() => wrote.writeNewSync(file, '2'), exists)
  wrote.writeNewSync(`${file}2`, '2')
  assert.deepEqual([read(), read(`${file}2`)], ['1', '2'])
})

test('errors are those of node:fs', async () => {
  const there = path.join(folder, 'no', 'file')
  const found = await wrote.write(there, '').catch((error) => error)
  const expected = await fs.promises.writeFile(there, '').catch((error) => error)
  assert.ok(found instanceof Error)
  for (const key of ['code', 'errno', 'path']) assert.equal(found[key], expected[key])
  assert.match(found.message, /^ENOENT: .*file'$/)
  assert.match(found.stack, /wrote\.test\.js/)
  await assert.rejects(wrote.write(folder, ''), { code: 'EISDIR', kind: 'Refused', message: /is a folder/ })
})

test('a link stays and the mode is kept', async () => {
  fs.writeFileSync(file, 'old', { mode: 0o640 })
  const link = path.join(folder, 'link')
  fs.symlinkSync('file', link)
  await wrote.write(link, 'new')
  const stream = wrote.replace(link)
  stream.end('newer')
  await once(stream, 'finish')
  assert.ok(fs.lstatSync(link).isSymbolicLink())
  assert.equal(read(), 'newer')
  assert.equal(fs.statSync(file).mode & 0o777, 0o640)
  assert.deepEqual(names(), ['file', 'link'])
})

test('atomic writes have lengths or a reason', () => {
  fs.writeFileSync(file, 'precious')
  let told
  try {
    told = wrote.atomicWrites(file)
  } catch (refused) {
    assert.match(refused.message, /there are no atomic writes here: /)
    assert.equal(refused.code, 'ENOTSUP')
  }
  assert.ok(!told || (told.bytesMin > 0 && told.bytesMin <= told.bytesMax))
  assert.throws(() => wrote.atomicWrites(`${file}1`), { code: 'ENOENT' })
})

test('a copy is whole', async () => {
  fs.writeFileSync(file, 'precious')
  assert.equal(await wrote.copy(file, `${file}1`), 8)
  assert.equal(wrote.copySync(file, `${file}2`), 8)
  assert.deepEqual([read(`${file}1`), read(`${file}2`)], ['precious', 'precious'])
  await assert.rejects(wrote.copy(file, `${file}1`), { code: 'EEXIST' })
})

test('the old file stays until the commit', async () => {
  fs.writeFileSync(file, 'old')
  const stream = wrote.replace(file)
  stream.write('größe\n')
  stream.write(Buffer.from('bytes'))
  await stream.flush()
  assert.equal(read(), 'old')
  const written = await stream.commit()
  assert.deepEqual({ ...written, elapsed: 0, direct: 0 }, { bytes: 13, elapsed: 0, direct: 0, durable: true })
  assert.equal(stream.bytesWritten, 13)
  assert.equal(read(), 'größe\nbytes')
  assert.deepEqual(names(), ['file'])
})

test('a stream that is destroyed leaves the old file', async () => {
  fs.writeFileSync(file, 'old')
  const stop = new AbortController()
  const ends = [
    (stream) => stream.destroy(),
    (stream) => stream.destroy(new Error('mine')),
    () => stop.abort(),
  ]
  for (const end of ends) {
    const stream = wrote.replace(file, { signal: stop.signal })
    stream.on('error', () => {})
    stream.write('half')
    await stream.flush()
    end(stream)
    await closed(stream)
    await assert.rejects(stream.commit())
    assert.deepEqual([read(), names()], ['old', ['file']])
  }
  // The stream is destroyed before it is open.
  const stream = wrote.replace(file)
  stream.write('half')
  stream.destroy()
  await closed(stream)
  assert.deepEqual([read(), names()], ['old', ['file']])
})

test('a pipeline puts a file in place, and leaves the old one after an error', async () => {
  const pieces = Array.from({ length: 300 }, (_, number) => Buffer.alloc(number * 20, number))
  await pipeline(Readable.from(pieces), wrote.replace(file))
  assert.ok(fs.readFileSync(file).equals(Buffer.concat(pieces)))
  const broken = Readable.from((function * () {
    yield 'half'
    throw new Error('mine')
  })())
  const stream = wrote.replace(file)
  const isClosed = closed(stream)
  await assert.rejects(pipeline(broken, stream), { message: 'mine' })
  await isClosed
  assert.ok(fs.readFileSync(file).equals(Buffer.concat(pieces)))
  await assert.rejects(pipeline(Readable.from(['x']), wrote.replace(path.join(folder, 'no', 'x'))), { code: 'ENOENT' })
  assert.deepEqual(names(), ['file'])
})

test('long content is whole, by small and by long pieces', async () => {
  const stream = wrote.replace(file, { sizeHint: 11 * 100_000 })
  for (let number = 0; number < 100_000; number++) {
    if (!stream.write('0123456789\n')) await once(stream, 'drain')
  }
  stream.cork()
  for (let number = 0; number < 40; number++) stream.write(Buffer.alloc(10_000, 'x'))
  process.nextTick(() => stream.uncork())
  assert.equal((await stream.commit()).bytes, 1_100_000 + 400_000)
  assert.equal(read(), '0123456789\n'.repeat(100_000) + 'x'.repeat(400_000))
})

test('files are created and appended to', async () => {
  const created = wrote.create(file, { mode: 0o600 })
  created.write('one\n')
  await created.sync()
  assert.equal(read(), 'one\n')
  await created.commit()
  const appended = wrote.append(file, { sync: 'always' })
  await new Promise((resolve) => appended.write('two\n', resolve))
  assert.equal(read(), 'one\ntwo\n')
  await appended.commit()
  assert.equal(fs.statSync(file).mode & 0o777, 0o600)
  await assert.rejects(wrote.create(file, { flags: 'wx' }).commit(), { code: 'EEXIST' })
  await assert.rejects(wrote.create(file, { sync: 'often' }).commit(), { code: 'ERR_INVALID_ARG_VALUE' })
})

test('a call that was aborted before does nothing', async () => {
  const signal = AbortSignal.abort()
  for (const call of [
    wrote.write(file, '', { signal }), wrote.writeNew(file, '', { signal }),
    wrote.copy(file, `${file}2`, { signal }), all(wrote.readLog(file, { signal })),
  ]) {
    await assert.rejects(call, { name: 'AbortError' })
  }
  assert.deepEqual(names(), [])
})

test('records are appended and read', async () => {
  const log = await wrote.openLog(file)
  assert.equal(await log.append('zero'), 0)
  assert.equal(log.survives(0), 'power-loss')
  assert.equal(log.stats().durableSequence, 1)
  assert.deepEqual(await Promise.all([log.append('one'), log.append(Buffer.from('two'))]), [1, 2])
  assert.deepEqual(await log.appendAll(['three', new Uint8Array([65])]), { first: 3, last: 4 })
  assert.equal(await log.wait(4, { durable: true }), 4)
  assert.equal(await log.wait(0), 0)
  await log.sync()
  assert.deepEqual(await texts(log.reader()), ['zero', 'one', 'two', 'three', 'A'])
  const [last] = await all(wrote.readLog(file, { start: 4 }))
  assert.equal(last.sequence, 4)
  assert.deepEqual(await texts(wrote.readLog(file, { since: last.writtenAtMs })), ['three', 'A'])
  assert.deepEqual(await all(wrote.readLog(file, { since: new Date(Date.now() + 1e6) })), [])
  await log.close()
  assert.ok(log.closed)
})

test('a log is cut and trimmed', async () => {
  const log = await wrote.openLog(file)
  await Promise.all([0, 1, 2, 3, 4].map((number) => log.append(String(number))))
  await log.truncateFrom(2)
  assert.equal(await log.append('again'), 2)
  assert.equal(await log.trimBefore(1), 0)
  assert.deepEqual(await texts(log.reader()), ['0', '1', 'again'])
  await log.close()
})

test('errors of logs', async () => {
  const log = await wrote.openLog(file)
  const refused = { kind: 'Refused', code: 'EINVAL' }
  await assert.rejects(wrote.openLog(file), { kind: 'Refused', code: 'EBUSY' })
  const tooLong = { kind: 'TooLong', code: 'EMSGSIZE', message: /\(bufferBytes of openLog\(\)\)/ }
  await assert.rejects(log.append(Buffer.alloc(2 << 20)), tooLong)
  await assert.rejects(log.appendAll([]), refused)
  await assert.rejects(log.wait(1e6), { ...refused, sequence: 1e6 })
  for (const wrong of [{ sync: 'often' }, { sync: -1 }, { sync: {} }, { bufferBytes: 1.5 }]) {
    await assert.rejects(wrote.openLog(file, wrong), { code: 'ERR_INVALID_ARG_VALUE' })
  }
  assert.throws(() => log.survives(-1), { code: 'ERR_INVALID_ARG_VALUE' })
  await assert.rejects(log.append(7), { code: 'ERR_INVALID_ARG_TYPE' })
  await log.close()
  await assert.rejects(log.append('late'), { kind: 'Refused' })
  await assert.rejects(all(wrote.readLog(folder)), { kind: 'Refused' })
})

test('64 promises share flushes, and need no thread of the pool', async () => {
  const log = await wrote.openLog(file)
  // All threads of the pool block here until the records are durable.
  const blocked = Array.from({ length: 4 }, (_, number) => {
    const fifo = path.join(folder, `fifo${number}`)
    assert.equal(spawnSync('mkfifo', [fifo]).status, 0)
    return fifo
  })
  const opening = blocked.map((fifo) => fs.promises.open(fifo, 'r'))
  const task = async () => {
    for (let number = 0; number < 20; number++) {
      const sequence = await log.append('x')
      assert.ok(log.stats().durableSequence > sequence)
    }
  }
  await Promise.all(Array.from({ length: 64 }, task))
  assert.equal(log.stats().durableSequence, 64 * 20)
  assert.ok(log.stats().flushes < 64 * 20)
  const writers = blocked.map((fifo) => fs.openSync(fifo, fs.constants.O_RDWR | fs.constants.O_NONBLOCK))
  for (const opened of opening) await (await opened).close()
  writers.forEach((writer) => fs.closeSync(writer))
  await log.close()
})

test('appends wait for room in their order, and a close waits for them', async () => {
  const log = await wrote.openLog(file, { sync: 'no', buffers: 2, bufferBytes: 4096 })
  const record = Buffer.alloc(1000)
  const promises = Array.from({ length: 300 }, (_, number) => {
    record.fill(number)
    return number % 7 === 0 ? log.appendAll([record]).then(({ last }) => last) : log.append(record)
  })
  const end = log.close()
  assert.deepEqual(await Promise.all(promises), promises.map((_, number) => number))
  await end
  const records = await all(wrote.readLog(file))
  assert.deepEqual(records.map(({ data }) => data[999]), promises.map((_, number) => number % 256))
})

test('a reader follows, and a signal ends it', async () => {
  const stop = new AbortController()
  const reader = wrote.readLog(file, { follow: true, signal: stop.signal })
  const first = reader.next()
  const log = await wrote.openLog(file)
  await log.append('there')
  assert.equal((await first).value.data.toString(), 'there')
  const next = reader.next()
  setImmediate(() => stop.abort())
  await assert.rejects(next, { name: 'AbortError' })
  assert.deepEqual(await reader.next(), { value: undefined, done: true })
  await log.close()
})

test('a tail ends with its log', async () => {
  const log = await wrote.openLog(file)
  const tail = texts(log.reader({ follow: true }))
  const count = 1000
  await Promise.all(Array.from({ length: count }, (_, number) => log.append(String(number))))
  await log.close()
  assert.deepEqual(await tail, Array.from({ length: count }, (_, number) => String(number)))
})

test('an exit leaves nothing half and says so', () => {
  const begin = "const file = wrote.replace('file'); file.write('half'); "
  for (const [end, status] of [
    ["file.flush()", 0], ["file.flush().then(() => process.exit(0))", 0],
    ["file.flush().then(() => { throw new Error('mine') })", 1], ['', 0],
  ]) {
    fs.writeFileSync(file, 'old')
    const said = run(begin + end, status)
    assert.ok(said.includes('wrote: file: not replaced: its stream was never ended'), said)
    assert.deepEqual([read(), names()], ['old', ['file']])
  }
})

test('a save that has begun is whole after an exit', () => {
  fs.writeFileSync(file, 'old')
  assert.equal(run("for (let n = 0; n < 9; n++) wrote.write('file', Buffer.alloc(1e6, 'x')); process.exit(0)"), '')
  assert.equal(read(), 'x'.repeat(1e6))
  assert.deepEqual(names(), ['file'])
})

test('an exit makes an open log durable', async () => {
  const begin = "wrote.openLog('file', { sync: 'no' }).then(async (log) => { await log.append('1'); "
  assert.equal(run(`${begin} })`), '')
  assert.equal(run(`${begin} log.append('2'); process.exit(0) })`), '')
  assert.deepEqual(await texts(wrote.readLog(file)), ['1', '1', '2'])
})

test('an exit keeps every record that was appended, also those that waited for room', async () => {
  const append = "for (let n = 0; n < 20000; n++) log.append(String(n).padEnd(500)); "
  for (const [end, status] of [['process.exit(0)', 0], ["throw new Error('mine')", 1]]) {
    fs.rmSync(file, { recursive: true, force: true })
    run(`wrote.openLog('file', { buffers: 2 }).then((log) => { ${append} ${end} })`, status)
    assert.equal((await texts(wrote.readLog(file))).length, 20000)
  }
})

test('a forgotten stream is abandoned and a forgotten log is closed, with a warning', () => {
  fs.writeFileSync(file, 'old')
  const said = run(`
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    async function forget() {
      const file = wrote.replace('file')
      file.write('half')
      await file.flush()
      const log = await wrote.openLog('log')
      await log.append('1')
    }
    forget().then(async () => {
      const seen = new Set()
      process.on('warning', ({ message }) => seen.add(message))
      while (seen.size < 2) { gc(); await turn() }
      const log = await wrote.openLog('log')
      if (log.stats().nextSequence !== 1) throw new Error('lost')
      await log.close()
    })`, 0, ['--expose-gc'])
  assert.match(said, /ResourceWarning: file: not replaced/)
  assert.match(said, /ResourceWarning: log: the log was never closed/)
  assert.deepEqual([read(), names()], ['old', ['file', 'log']])
})

test('exceptions of the program pass through', async () => {
  const log = await wrote.openLog(`${file}-log`)
  const records = function * () {
    yield '1'
    throw new RangeError('own')
  }
  await assert.rejects(log.appendAll(records()), RangeError)
  const answers = [0, 1, 2].map((number) => log.append('x').then((sequence) => {
    if (number === 1) throw new RangeError('own')
    return sequence
  }))
  assert.deepEqual((await Promise.allSettled(answers)).map(({ value }) => value), [0, undefined, 2])
  assert.equal(await log.append('y'), 3)
  await log.close()
  fs.writeFileSync(file, 'old')
  const said = run(`
    const stream = wrote.replace('file')
    stream.write('half', () => { throw new RangeError('own') })`, 1)
  assert.match(said, /RangeError: own/)
  assert.match(said, /file: not replaced/)
  assert.deepEqual([read(), names()], ['old', ['file', 'file-log']])
})

test('promises of a forgotten log are answered', () => {
  run(`
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    const start = async () => (await wrote.openLog('log')).append('1')
    async function main() {
      let sequence
      start().then((found) => { sequence = found })
      while (sequence === undefined) { gc(); await turn() }
    }
    main()`, 0, ['--expose-gc'])
})

test('ten thousand handles go in odd orders', () => {
  fs.writeFileSync(file, 'old')
  run(`
    async function main() {
      let log = await wrote.openLog('log', { sync: 'no', bufferBytes: 4096 })
      const kept = []
      for (let number = 0; number < 10_000; number++) {
        kept[number * 7919 % 61] = [
          () => log.append(Buffer.alloc(100)),
          () => wrote.replace('file').on('error', () => {}),
          () => wrote.readLog('log').next(),
          () => [kept[0]],
        ][number % 4]()
        if (number % 1000 === 999) {
          await log.close()
          log = await wrote.openLog('log', { sync: 'no', bufferBytes: 4096 })
        }
        if (number % 500 === 0) { gc(); await new Promise(setImmediate) }
      }
      kept.length = 0
      await log.close()
      while (require('fs').readdirSync('.').length > 2) { gc(); await new Promise(setImmediate) }
      const links = require('fs').readdirSync('/proc/self/fd').map((name) => {
        try { return require('fs').readlinkSync('/proc/self/fd/' + name) } catch { return '' }
      })
      const left = links.filter((link) => link.startsWith(process.cwd() + '/file'))
      if (left.length > 0) throw new Error(left.join())
    }
    main()`, 0, ['--expose-gc', '--no-warnings'])
  assert.deepEqual([read(), names()], ['old', ['file', 'log']])
})

test('worker threads use it, and may be terminated at any moment', async () => {
  const code = `
    const { parentPort, workerData: { wrote: name, folder } } = require('worker_threads')
    const wrote = require(name)
    wrote.openLog(folder, { bufferBytes: 4096 }).then(async (log) => {
      parentPort.postMessage(await log.append('1'))
      wrote.replace(folder + '-file').write('half')
      for (;;) await Promise.all([log.append('2'), log.append('3')])
    })`
  for (let number = 0; number < 5; number++) {
    const log = path.join(folder, String(number))
    const worker = new Worker(code, { eval: true, workerData: { wrote: require.resolve('wrote'), folder: log } })
    assert.deepEqual(await once(worker, 'message'), [0])
    await worker.terminate()
    const [first] = await texts(wrote.readLog(log))
    assert.equal(first, '1')
  }
})

test('the event loop turns while calls wait', async () => {
  const log = await wrote.openLog(file)
  let turns = 0
  const interval = setInterval(() => turns++, 0)
  const reading = wrote.readLog(file, { follow: true }).next()
  while (turns < 3) await log.append('x')
  clearInterval(interval)
  await reading
  await log.close()
})

test('lines of a plain file are whole, and a rotated file is opened anew', async () => {
  fs.writeFileSync(file, 'before\nhalf')
  const lines = await wrote.lines(file)
  await assert.rejects(wrote.lines(file), { kind: 'Refused' })
  await Promise.all(['one', 'two', 'three'].map((line) => lines.append(line)))
  fs.renameSync(file, `${file}.1`)
  await lines.reopen()
  await lines.append(Buffer.from('after'))
  await assert.rejects(lines.append('two\nlines'), { kind: 'Refused' })
  await lines.close()
  assert.equal(fs.readFileSync(`${file}.1`, 'utf8'), 'before\none\ntwo\nthree\n')
  assert.equal(fs.readFileSync(file, 'utf8'), 'after\n')
  assert.equal(fs.readFileSync(`${file}.torn-0`, 'utf8'), 'half')
})

test('the types name what is there', async () => {
  const types = fs.readFileSync(path.join(path.dirname(require.resolve('wrote')), 'index.d.ts'), 'utf8')
  const found = (pattern, text = types) => [...text.matchAll(pattern)].map(([, name]) => name).sort()
  assert.deepEqual(found(/^export (?:class|const|function) (\w+)/gm), Object.keys(wrote).sort())
  const body = (name) => types.match(new RegExp(`^export (?:class|interface) ${name}\\b[^]*?^}`, 'm'))[0]
  const members = (name) => found(/^ {2}(?:readonly )?(\w+)[(:]/gm, body(name))
  const own = (thing) => [...Object.keys(thing), ...Object.getOwnPropertyNames(thing.constructor.prototype)]
    .filter((name) => !name.startsWith('_') && name !== 'constructor').sort()
  const log = await wrote.openLog(file)
  assert.deepEqual(members('Log'), own(log))
  assert.deepEqual(members('Stats'), Object.keys(log.stats()).sort())
  await log.append('1')
  const [record] = await all(log.reader())
  assert.deepEqual(members('Record'), Object.keys(record).sort())
  await log.close()
  const stream = wrote.replace(`${file}2`)
  const base = new Set(Object.keys(new (require('node:stream').Writable)()))
  assert.deepEqual(members('Writer'), own(stream).filter((name) => !base.has(name)))
  assert.deepEqual(members('Written'), Object.keys(await stream.commit()).sort())
})

test('the version is the same everywhere', () => {
  assert.equal(require('wrote/package.json').version, wrote.version)
})
