/** The players of the matchmaking benchmark, in a process of their own. */
import * as Schema from "effect/Schema"
import { Target } from "../wire/protocol.ts"
import { percentile, Quantiles, quantilesOf } from "./figures.ts"
import { type Askers, matchmakers } from "./matchmakers.ts"
import { busyPercent, inFlight, openLoop } from "./pace.ts"
import { fail, obey } from "./worker.ts"

export const Command = Schema.Union([
  Schema.Struct({
    t: Schema.Literal("gather"),
    matchmaker: Schema.String,
    target: Target,
    count: Schema.Int
  }),
  /** Everybody asks: at so many a second, or at most so many under way. */
  Schema.Struct({
    t: Schema.Literal("match"),
    count: Schema.Int,
    perSecond: Schema.NullOr(Schema.Number),
    atATime: Schema.Int
  }),
  Schema.Struct({ t: Schema.Literal("leave") })
])
export type Command = typeof Command.Type

export const Done = Schema.Struct({})

/** Times in milliseconds, from when a player was due to ask. */
export const Matched = Schema.Struct({
  seconds: Schema.Number,
  /** Until the player was in its room. */
  wait: Quantiles,
  /** Until its room was full. */
  full: Quantiles,
  lateP99: Schema.Number,
  /** Rooms that got fewer players than they hold. */
  notFull: Schema.Int,
  busyPercent: Schema.Number
})
export type Matched = typeof Matched.Type

const roomSize = 4

interface Asked {
  readonly roomId: string
  readonly dueAt: number
  readonly inAt: number
}

let askers: Askers | undefined

async function match(
  command: Extract<Command, { t: "match" }>,
  { match }: Askers
): Promise<object> {
  const { atATime, count, perSecond } = command
  const asked: Array<Asked> = []
  const late: Array<number> = []
  const one = async (index: number, dueAt = performance.now()): Promise<void> => {
    late.push(performance.now() - dueAt)
    const roomId = await match(index)
    asked.push({ roomId, dueAt, inAt: performance.now() })
  }
  const started = performance.now()
  const busy = await busyPercent(() =>
    perSecond === null
      ? inFlight(count, atATime, (index) => one(index))
      : openLoop(count, perSecond, one)
  )
  const seconds = (performance.now() - started) / 1000
  const rooms = Array.from(Map.groupBy(asked, ({ roomId }) => roomId).values())
  const result: Matched = {
    seconds,
    wait: quantilesOf(asked.map(({ dueAt, inAt }) => inAt - dueAt)),
    full: quantilesOf(
      rooms.flatMap((room) => {
        const fullAt = Math.max(...room.map(({ inAt }) => inAt))
        return room.map(({ dueAt }) => fullAt - dueAt)
      })
    ),
    lateP99: percentile(late, 99),
    notFull: rooms.filter((room) => room.length !== roomSize).length,
    busyPercent: busy
  }
  return result
}

const decodeCommand = Schema.decodeUnknownSync(Command)

if (import.meta.main) {
  obey(async (input) => {
    const command = decodeCommand(input)
    if (command.t === "gather") {
      const matchmaker = matchmakers.find(({ name }) => name === command.matchmaker)
      const events = { onDelivery: () => undefined, onLost: fail }
      askers = await matchmaker?.gather(command.target, command.count, events)
      return {}
    }
    if (askers === undefined) throw new Error("nobody is there to be matched")
    if (command.t === "match") return match(command, askers)
    await askers.leave()
    return {}
  })
}
