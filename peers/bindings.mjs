// Runs a workload once, with the npm package or with hand-written code, and prints the outcome.
//
// bindings.mjs WORK BY MODULES, in the folder to write to, where WORK is `save` or `tasks`, BY is
// `wrote` or `hand`, and MODULES is the folder in which the packages are installed.

import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { ByHand } from '../bindings/langs/node-wrote/by-hand.cjs'

const [work, by, modules] = process.argv.slice(2)
const load = createRequire(path.resolve(modules, 'package.json'))

const SAVES = 200
const SAVE_BYTES = 4096
const TASKS = 64
const RECORDS = 2000
const RECORD_BYTES = 100

/** write-file-atomic, which syncs the file and not its folder. */
function saveByHand() {
  const writeFileAtomic = load('write-file-atomic')
  return async (file, content) => {
    await writeFileAtomic(file, content)
    const folder = await fs.promises.open(path.dirname(file))
    await folder.sync()
    await folder.close()
  }
}

async function save(folder) {
  const act = by === 'wrote' ? load('wrote').write : saveByHand()
  const [file, content] = [path.join(folder, 'saved'), randomBytes(SAVE_BYTES)]
  await act(file, content)
  return async () => {
    for (let number = 0; number < SAVES; number++) await act(file, content)
    return [SAVES, SAVES * SAVE_BYTES]
  }
}

async function tasks(folder) {
  const record = randomBytes(RECORD_BYTES)
  const open = by === 'wrote' ? load('wrote').openLog : ByHand.open
  return async () => {
    const log = await open(path.join(folder, 'log'))
    const task = async () => {
      for (let number = 0; number < RECORDS; number++) await log.append(record)
    }
    await Promise.all(Array.from({ length: TASKS }, task))
    await log.close()
    return [TASKS * RECORDS, TASKS * RECORDS * RECORD_BYTES]
  }
}

const folder = fs.mkdtempSync(path.resolve('run-'))
try {
  const run = await { save, tasks }[work](folder)
  const [begun, cpu] = [process.hrtime.bigint(), process.cpuUsage()]
  const [operations, bytes] = await run()
  const { user, system } = process.cpuUsage(cpu)
  const elapsed_s = Number(process.hrtime.bigint() - begun) / 1e9
  console.log(JSON.stringify({ bytes, operations, elapsed_s, cpu_s: (user + system) / 1e6 }))
} finally {
  fs.rmSync(folder, { recursive: true })
}
