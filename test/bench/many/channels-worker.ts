/** The audience of the channels benchmark and its one publisher, in a process of their own. */
import { setTimeout as wait } from "node:timers/promises"
import * as Schema from "effect/Schema"
import { clockMicros } from "../wire/message.ts"
import { Target } from "../wire/protocol.ts"
import { audienceServers, type Publisher } from "./audiences.ts"
import { Quantiles, quantilesOf } from "./figures.ts"
import { busyPercent, inFlight } from "./pace.ts"
import { fail, obey } from "./worker.ts"

export const Command = Schema.Union([
  /** Subscribes so many, and the publisher. */
  Schema.Struct({
    t: Schema.Literal("gather"),
    server: Schema.String,
    target: Target,
    count: Schema.Int
  }),
  /** Publishes `messages`, `rate` a second, and waits for all deliveries. */
  Schema.Struct({ t: Schema.Literal("window"), messages: Schema.Int, rate: Schema.Number })
])
export type Command = typeof Command.Type

export const Gathered = Schema.Struct({ millis: Schema.Number })

export const Window = Schema.Struct({
  deliveries: Schema.Int,
  expected: Schema.Int,
  /** Milliseconds from when a message was due to its arrival, over all subscribers. */
  latency: Quantiles,
  lateMillis: Schema.Number,
  busyPercent: Schema.Number
})
export type Window = typeof Window.Type

const subscribesAtATime = 64
const drainMillis = 10_000

let publisher: Publisher | undefined
let audience = 0
let onDelivery: (ts: number) => void = () => undefined

async function gather({ count, server: name, target }: Extract<Command, { t: "gather" }>) {
  const server = audienceServers.find((candidate) => candidate.name === name)
  if (server === undefined) throw new Error(`no server is called ${name}`)
  const started = performance.now()
  const events = { onDelivery: (ts: number) => onDelivery(ts), onLost: fail }
  await inFlight(count, subscribesAtATime, async (index) => {
    await server.subscribe(target, index, events)
  })
  audience = count
  publisher = await server.publish(target, { onDelivery: () => undefined, onLost: fail })
  return { millis: performance.now() - started }
}

async function window(messages: number, rate: number, { send }: Publisher): Promise<Window> {
  const latency: Array<number> = []
  onDelivery = (ts) => void latency.push((clockMicros() - ts) / 1000)
  let late = 0
  const start = clockMicros()
  const expected = messages * audience
  const work = async (): Promise<void> => {
    for (let n = 0; n < messages; n++) {
      const due = start + Math.floor((n * 1_000_000) / rate)
      while (clockMicros() < due) await wait(1)
      late = Math.max(late, clockMicros() - due)
      send(n, due)
    }
    for (let waited = 0; latency.length < expected && waited < drainMillis; waited += 5) {
      await wait(5)
    }
  }
  const busy = await busyPercent(work)
  return {
    deliveries: latency.length,
    expected,
    latency: quantilesOf(latency),
    lateMillis: late / 1000,
    busyPercent: busy
  }
}

const decodeCommand = Schema.decodeUnknownSync(Command)

if (import.meta.main) {
  obey(async (input) => {
    const command = decodeCommand(input)
    if (command.t === "gather") return gather(command)
    if (publisher === undefined) throw new Error("nobody listens")
    return window(command.messages, command.rate, publisher)
  })
}
