// Appends the lines of standard input to a log by a client of Redis, in pipelines and transactions,
// and reads them back. Arguments: the folder of the clients, `ioredis` or `redis`, the port.
const assert = require('node:assert');
const { createRequire } = require('node:module');
const { readFileSync } = require('node:fs');

// Commands of a pipeline or a transaction.
const WINDOW = 50;
const [folder, name, port] = process.argv.slice(2);
const library = createRequire(`${folder}/`)(name);

async function ioredis(lines) {
  const redis = new library.Redis(Number(port));
  const reader = redis.duplicate();
  const first = reader.xread('COUNT', 1, 'BLOCK', 0, 'STREAMS', 'log', '0');
  for (let at = 0; at < lines.length; at += WINDOW) {
    const batch = at % (2 * WINDOW) ? redis.multi() : redis.pipeline();
    lines.slice(at, at + WINDOW).forEach((line) => batch.xadd('log', '*', 'message', line));
    for (const [error] of await batch.exec()) assert.ifError(error);
  }
  const entries = await redis.xrange('log', '-', '+');
  assert.deepStrictEqual(entries.map(([, fields]) => fields), lines.map((line) => ['message', line]));
  assert.strictEqual(await redis.xlen('log'), lines.length);
  assert.deepStrictEqual(await first, [['log', entries.slice(0, 1)]]);
  const refused = redis.multi().xadd('log', '*', 'message', 'refused').set('a', 'b').exec();
  await assert.rejects(refused, /EXECABORT/);
  await assert.rejects(redis.set('a', 'b'), /unknown command/);
  assert.strictEqual(await redis.xlen('log'), lines.length);
  redis.disconnect();
  reader.disconnect();
}

async function nodeRedis(lines) {
  const redis = await library.createClient({ socket: { port: Number(port) } }).connect();
  const reader = await redis.duplicate().connect();
  const first = reader.xRead({ key: 'log', id: '0' }, { COUNT: 1, BLOCK: 0 });
  for (let at = 0; at < lines.length; at += WINDOW) {
    const some = lines.slice(at, at + WINDOW);
    if (at % (2 * WINDOW)) {
      const batch = redis.multi();
      some.forEach((message) => batch.xAdd('log', '*', { message }));
      assert.strictEqual((await batch.exec()).length, some.length);
    } else {
      // Calls of one turn share a write.
      await Promise.all(some.map((message) => redis.xAdd('log', '*', { message })));
    }
  }
  const entries = await redis.xRange('log', '-', '+');
  assert.deepStrictEqual(entries.map((entry) => entry.message.message), lines);
  assert.strictEqual(await redis.xLen('log'), lines.length);
  const [{ messages }] = await first;
  assert.strictEqual(messages[0].message.message, lines[0]);
  const refused = redis.multi().xAdd('log', '*', { message: 'refused' }).set('a', 'b').exec();
  await assert.rejects(refused, /not taken in a transaction/);
  await assert.rejects(redis.set('a', 'b'), /unknown command/);
  assert.strictEqual(await redis.xLen('log'), lines.length);
  redis.destroy();
  reader.destroy();
}

const lines = readFileSync(0, 'utf8').split('\n').slice(0, -1);
(name === 'ioredis' ? ioredis : nodeRedis)(lines).catch((error) => {
  console.error(error);
  process.exit(1);
});
