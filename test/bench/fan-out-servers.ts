/** The servers of the fan-out benchmark with their players seated, and the search for their capacity. */
import type { Cores } from "./machine/cores.ts"
import {
  type Capacity,
  deliveriesPerRound,
  generatorKeptUp,
  isDisturbed,
  keptUp,
  type Window
} from "./fan-out-figures.ts"
import { startGenerator } from "./load/client.ts"
import type { Shape } from "./wire/protocol.ts"
import { machineMicros } from "./machine/process.ts"
import type { Peer } from "./servers/peer.ts"

export interface SeatedServer {
  readonly name: string
  /** Every player of the shape sends `rate` messages a second for the lead and the window. */
  readonly window: (shape: Shape, rate: number, leadMs: number, windowMs: number) => Promise<Window>
}

/** A window during which something else ran is measured again, so many times in all. */
const triesMax = 3

/** Starts a server and seats the players of all shapes. */
export async function seat(
  peer: Peer,
  shapes: ReadonlyArray<Shape>,
  cores: Cores,
  stack: AsyncDisposableStack
): Promise<SeatedServer> {
  const server = await peer.start(cores.server)
  stack.defer(server.stop)
  const { target } = server
  const generator = await startGenerator({ server: peer.name, target, shapes, core: cores.load })
  stack.defer(generator.stop)
  const read = async () => ({ server: await server.cpuMicros(), all: (await machineMicros()) ?? 0 })
  const once: SeatedServer["window"] = async (shape, rate, leadMs, windowMs) => {
    let before = { server: 0, all: 0 }
    let after = before
    const run = { shape: shapes.indexOf(shape), rate, leadMs, windowMs }
    const figures = await generator.run(run, {
      opened: async () => void (before = await read()),
      closed: async () => void (after = await read())
    })
    const spent = after.server - before.server
    const serverPercent = spent / (windowMs * 10)
    const allPercent = (after.all - before.all) / (windowMs * 10)
    return {
      ...figures,
      perSecond: (figures.windowDeliveries * 1000) / windowMs,
      cpuPerDelivery: spent / figures.windowDeliveries,
      serverPercent,
      othersPercent: Math.max(0, allPercent - serverPercent - figures.busyPercent)
    }
  }
  const window: SeatedServer["window"] = async (...load) => {
    for (let i = 1; ; i++) {
      const found = await once(...load)
      if (i === triesMax || !isDisturbed(found)) return found
    }
  }
  return { name: peer.name, window }
}

/** The service closes sockets that send more than 100 frames a second for long. */
const rateMax = 100
const step = { leadMs: 300, windowMs: 1000, factor: 1.25, halfFactor: Math.sqrt(1.25) } as const
const stepsMax = 20

/**
 * Steps up from `start` deliveries a second by a quarter until the server does not keep up, twice, and
 * tries half a step above the last at which it did. Steps down as long as even the first was too much.
 */
export async function capacityOf(
  server: SeatedServer,
  shape: Shape,
  start: number
): Promise<Capacity | undefined> {
  const { factor, halfFactor, leadMs, windowMs } = step
  let isServerTheLimit = true
  const attempt = async (perSecond: number): Promise<Window | undefined> => {
    const rate = perSecond / deliveriesPerRound(shape)
    const once = () => server.window(shape, rate, leadMs, windowMs)
    isServerTheLimit = rate <= rateMax
    if (!isServerTheLimit) return undefined
    const first = await once()
    const window = keptUp(first) && generatorKeptUp(first) ? first : await once()
    isServerTheLimit = generatorKeptUp(window)
    return keptUp(window) && isServerTheLimit ? window : undefined
  }
  let target = start
  let best = await attempt(target)
  for (let i = 0; i < stepsMax && best === undefined; i++) {
    target /= factor
    best = await attempt(target)
  }
  if (best === undefined) return undefined
  if (target === start) {
    for (let i = 0; i < stepsMax; i++) {
      const next = await attempt(target * factor)
      if (next === undefined) break
      best = next
      target *= factor
    }
  }
  best = (await attempt(target * halfFactor)) ?? best
  return { server: server.name, shape, best, atLeast: !isServerTheLimit }
}
