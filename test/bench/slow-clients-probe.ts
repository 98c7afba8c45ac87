/**
 * Worker: requests of other players at a steady rate, and as many to a bare server, which shows what the
 * machine and this process add themselves; until it is asked for their latencies.
 */
import { setTimeout as wait } from "node:timers/promises"
import { parentPort, workerData } from "node:worker_threads"
import * as Schema from "effect/Schema"

const probesPerSecond = 40

/** What the worker gets: the addresses to ask, and the headers of each player. */
const ProbeOptions = Schema.Struct({
  url: Schema.String,
  echoUrl: Schema.String,
  headers: Schema.Array(Schema.Record(Schema.String, Schema.String))
})

const { echoUrl, headers, url } = Schema.decodeUnknownSync(ProbeOptions)(workerData)

/** The latencies of requests to one server, in milliseconds. */
class Latencies {
  readonly #millis: Array<number> = []
  #failed = 0

  async ask(address: string, own: Readonly<Record<string, string>>): Promise<void> {
    const from = performance.now()
    const status = await fetch(address, { headers: own }).then(
      async (answer) => {
        await answer.text()
        return answer.status
      },
      () => 0
    )
    if (status !== 200) this.#failed += 1
    this.#millis.push(performance.now() - from)
  }

  get report(): string {
    const sorted = this.#millis.toSorted((a, b) => a - b)
    const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1)
    return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${this.#failed} failed`
  }
}

const others = new Latencies()
const echo = new Latencies()

parentPort?.once("message", () => {
  parentPort?.postMessage(`others: ${others.report}; bare server: ${echo.report}`, [])
  parentPort?.close()
  process.exit()
})

for (let index = 0; ; index++) {
  void others.ask(url, headers[index % headers.length] ?? {})
  void echo.ask(echoUrl, {})
  await wait(1000 / probesPerSecond)
}
