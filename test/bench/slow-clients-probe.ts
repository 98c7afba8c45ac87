/** Worker: requests of other players at a steady rate, until it is asked for their latencies. */
import { setTimeout as wait } from "node:timers/promises"
import { parentPort, workerData } from "node:worker_threads"
import * as Schema from "effect/Schema"

const probesPerSecond = 40

/** What the worker gets: the address to ask, and the headers of each player. */
const ProbeOptions = Schema.Struct({
  url: Schema.String,
  headers: Schema.Array(Schema.Record(Schema.String, Schema.String))
})

const { headers, url } = Schema.decodeUnknownSync(ProbeOptions)(workerData)
const latencies: Array<number> = []
let failed = 0

async function ask(own: Readonly<Record<string, string>>): Promise<void> {
  const from = performance.now()
  const status = await fetch(url, { headers: own }).then(
    async (answer) => {
      await answer.text()
      return answer.status
    },
    () => 0
  )
  if (status !== 200) failed += 1
  latencies.push(performance.now() - from)
}

parentPort?.once("message", () => {
  const sorted = latencies.toSorted((a, b) => a - b)
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1)
  parentPort?.postMessage(`others: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${failed} failed`, [])
  parentPort?.close()
  process.exit()
})

for (let index = 0; ; index++) {
  void ask(headers[index % headers.length] ?? {})
  await wait(1000 / probesPerSecond)
}
