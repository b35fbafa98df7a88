// A program in TypeScript, which tests that the declarations accept it and that it runs.

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as wrote from 'wrote'
import { type Record, type Survives, type Written, type WroteError } from 'wrote'

async function main(): Promise<string> {
  await wrote.write('file', new Uint8Array([65]), { durable: false })
  const stream: wrote.Writer = wrote.replace(new URL('file:///proc/self/cwd/file'), { mode: 0o600, sizeHint: 9 })
  await pipeline(Readable.from(['text']), stream)
  const written: Written = await wrote.append(Buffer.from('file'), { sync: 500 }).commit()
  const log: wrote.Log = await wrote.openLog('log', { sync: 'everysec', retainAge: 1e9 })
  const { first, last } = await log.appendAll(['one', Buffer.from('two')])
  const survives: Survives = log.survives(await log.wait(last, { durable: true }))
  const records: Record[] = []
  for await (const record of log.reader({ start: first })) records.push(record)
  await log.close()
  const code = await wrote.writeNew('file', '').catch((error: WroteError) => error.code)
  // @ts-expect-error: a log has no such policy.
  await wrote.openLog('log', { sync: 'often' }).catch(() => {})
  await text()
  return [written.bytes, survives, records.map(({ data }) => data.toString('utf8')), code].join()
}

/** Saves a text, and drops another stream without a commit. */
async function text(): Promise<void> {
  await using log = await wrote.openLog('log2')
  await log.append('closed by the end of its scope')
  await using left = wrote.replace('file', { encoding: 'latin1' })
  left.write('abandoned')
  await wrote.write('file2', 'text', 'utf8')
  // @ts-expect-error: there is no such option.
  await wrote.write('file2', 'text', { durabel: false }).catch(() => {})
}

main().then(console.log)
