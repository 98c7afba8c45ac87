/**
 * Worker: requests of other players at times fixed in advance, and as many to a bare server, which shows
 * what the machine and this process add themselves; until it is asked for their latencies.
 */
import { setTimeout as wait } from "node:timers/promises"
import { parentPort, workerData } from "node:worker_threads"
import * as Schema from "effect/Schema"
import { quantilesOf } from "./many/figures.ts"

const probesPerSecond = 40
const stepMillis = 1000 / probesPerSecond

/** What the worker gets: the addresses to ask, and the headers of each player. */
const ProbeOptions = Schema.Struct({
  url: Schema.String,
  bareUrl: Schema.String,
  headers: Schema.Array(Schema.Record(Schema.String, Schema.String))
})

const { bareUrl, headers, url } = Schema.decodeUnknownSync(ProbeOptions)(workerData)

/** The latencies of requests to one server, in milliseconds from the time at which each was due. */
class Latencies {
  readonly #millis: Array<number> = []
  /** When the requests were due that have no answer yet. */
  readonly #waiting = new Set<{ readonly dueAt: number }>()
  #failed = 0

  async ask(address: string, own: Readonly<Record<string, string>>, dueAt: number): Promise<void> {
    const request = { dueAt }
    this.#waiting.add(request)
    const status = await fetch(address, { headers: own }).then(
      async (answer) => {
        await answer.text()
        return answer.status
      },
      () => 0
    )
    this.#waiting.delete(request)
    if (status !== 200) this.#failed += 1
    this.#millis.push(performance.now() - dueAt)
  }

  /** Those that still wait count with their time so far: a server that stands still answers none. */
  get report() {
    const now = performance.now()
    const waited = Array.from(this.#waiting, ({ dueAt }) => now - dueAt)
    const failed = this.#failed
    return { ...quantilesOf([...this.#millis, ...waited]), failed, unanswered: waited.length }
  }
}

const others = new Latencies()
const bare = new Latencies()
/** By how much each pair of requests left too late. */
const late: Array<number> = []

parentPort?.once("message", () => {
  const report = { others: others.report, bare: bare.report, late: quantilesOf(late) }
  parentPort?.postMessage(report, [])
  parentPort?.close()
  process.exit()
})

const start = performance.now()
for (let index = 0; ; index++) {
  const dueAt = start + index * stepMillis
  const early = dueAt - performance.now()
  if (early > 0) await wait(early)
  late.push(performance.now() - dueAt)
  void others.ask(url, headers[index % headers.length] ?? {}, dueAt)
  void bare.ask(bareUrl, {}, dueAt)
}
