/**
 * The players of the deploy benchmark, in a process of their own: they match into rooms, lose their
 * connections together, and return as the client does.
 */
import { setTimeout as wait } from "node:timers/promises"
import * as Schema from "effect/Schema"
import { afterClose, noAttempts } from "#client/reconnect"
import { abnormalClosure, type Closed } from "#client/socket"
import { authTimeout, closeCodes } from "#rpc/close-codes"
import { Target } from "../wire/protocol.ts"
import { mulberry32 } from "../load/schedule.ts"
import type { LoadSocket } from "../wire/socket.ts"
import { busyPercent, inFlight } from "./pace.ts"
import { ask, connectPlayer, signIn } from "./service.ts"
import { obey } from "./worker.ts"

/** Of each process of players; together as many as the other benchmarks. */
const connectsAtATime = 16
const seed = 20_261_122

export const Command = Schema.Union([
  Schema.Struct({
    t: Schema.Literal("gather"),
    target: Target,
    count: Schema.Int,
    /** Where the sockets come from: one address has too few ports for all. */
    localAddress: Schema.String
  }),
  /** Everybody connects, and is matched into a room of this mode. */
  Schema.Struct({ t: Schema.Literal("enter"), mode: Schema.String }),
  /** Waits until everybody is back in a room, or gives up. */
  Schema.Struct({ t: Schema.Literal("return"), patienceMillis: Schema.Number })
])
export type Command = typeof Command.Type

export const Done = Schema.Struct({})

export const Entered = Schema.Struct({ seconds: Schema.Number, busyPercent: Schema.Number })
export type Entered = typeof Entered.Type

/** Times on the clock of all processes, in Unix milliseconds. */
export const Returned = Schema.Struct({
  /** When the first and the last connection was lost. */
  firstLostAt: Schema.Number,
  lastLostAt: Schema.Number,
  lastBackAt: Schema.Number,
  back: Schema.Int,
  /** Players who came back and found their seat gone. */
  lost: Schema.Int,
  losses: Schema.Array(Schema.Tuple([Schema.String, Schema.Int])),
  /** From the loss of each returned player's connection to its room's answer. */
  awayMillis: Schema.Array(Schema.Number),
  attempts: Schema.Int,
  busyPercent: Schema.Number
})
export type Returned = typeof Returned.Type

interface Player {
  readonly token: string
  socket: LoadSocket | undefined
  roomId: string
  lostAt: number
  backAt: number
  seatLost: boolean
  /** Whether the player is on the way back. */
  returning: boolean
}

const now = (): number => performance.timeOrigin + performance.now()
const random = mulberry32(seed)

let target: Target | undefined
let localAddress = "127.0.0.1"
let players: ReadonlyArray<Player> = []
let connects = 0
/** Why seats were lost, and how many. */
const losses = new Map<string, number>()

const broken: Closed = { code: abnormalClosure, reason: "" }
const silent: Closed = { code: closeCodes.idle, reason: "timed_out" }

/** What the client would act on: what comes too late on either side is a silent socket to it. */
function closedOf(error: unknown): Closed {
  const message = String(error)
  if (message.includes("did not come within") || message.includes(authTimeout)) return silent
  const [, code = abnormalClosure, reason = ""] = /closed with (\d+) (.*)$/.exec(message) ?? []
  return { code: Number(code), reason }
}

async function connect(player: Player): Promise<LoadSocket> {
  if (target === undefined) throw new Error("nobody was gathered")
  connects += 1
  const events = {
    onDelivery: () => undefined,
    onLost: (error: Error) => {
      player.socket = undefined
      player.lostAt = now()
      if (!player.returning) void comeBack(player, closedOf(error))
    }
  }
  return connectPlayer(target, player.token, events, { localAddress })
}

/** Whether the room has refused the seat: any other end of a request says nothing about it. */
const isRefused = (error: unknown): boolean =>
  error instanceof Error &&
  error.message.includes("resume refused") &&
  !error.message.includes("unavailable")

/** Reconnects with the delays of the client until the room has answered. */
async function comeBack(player: Player, lost: Closed): Promise<void> {
  player.returning = true
  let closed = lost
  let attempts = noAttempts
  while (player.backAt === 0 && !player.seatLost) {
    const next = afterClose(attempts, { code: closed.code, at: now() }, random())
    if (!next.reconnect) return noteLoss(player, `closed with ${closed.code} ${closed.reason}`)
    attempts = next.attempts
    await wait(next.delayMillis)
    try {
      player.socket = await connect(player)
    } catch (error) {
      closed = closedOf(error)
      continue
    }
    try {
      await ask(player.socket, { t: "resume", roomId: player.roomId })
      player.backAt = now()
    } catch (error) {
      if (isRefused(error)) noteLoss(player, String(error))
      player.socket?.close()
      closed = broken
    }
  }
}

function noteLoss(player: Player, why: string): void {
  player.seatLost = true
  losses.set(why, (losses.get(why) ?? 0) + 1)
}

async function enter(mode: string): Promise<Entered> {
  const started = performance.now()
  const busy = await busyPercent(() =>
    inFlight(players.length, connectsAtATime, async (index) => {
      const player = players[index]!
      player.socket = await connect(player)
      player.roomId = await ask(player.socket, { t: "quickMatch", mode })
    })
  )
  return { seconds: (performance.now() - started) / 1000, busyPercent: busy }
}

async function returned(patienceMillis: number): Promise<Returned> {
  const isDone = ({ backAt, seatLost }: Player): boolean => backAt > 0 || seatLost
  connects = 0
  const giveUp = performance.now() + patienceMillis
  const busy = await busyPercent(async () => {
    while (!players.every(isDone) && performance.now() < giveUp) await wait(20)
  })
  const lostAt = players.map((player) => player.lostAt)
  const back = players.filter(({ backAt }) => backAt > 0)
  return {
    firstLostAt: Math.min(...lostAt),
    lastLostAt: Math.max(...lostAt),
    lastBackAt: Math.max(...back.map(({ backAt }) => backAt)),
    back: back.length,
    lost: players.filter(({ seatLost }) => seatLost).length,
    losses: Array.from(losses),
    awayMillis: back.map((player) => player.backAt - player.lostAt),
    attempts: connects,
    busyPercent: busy
  }
}

async function gather(command: Extract<Command, { t: "gather" }>): Promise<void> {
  target = command.target
  localAddress = command.localAddress
  const tokens = await signIn(target, command.count)
  players = tokens.map((token) => ({
    token,
    socket: undefined,
    roomId: "",
    lostAt: 0,
    backAt: 0,
    seatLost: false,
    returning: false
  }))
}

const decodeCommand = Schema.decodeUnknownSync(Command)

if (import.meta.main) {
  obey(async (input) => {
    const command = decodeCommand(input)
    if (command.t === "enter") return enter(command.mode)
    if (command.t === "return") return returned(command.patienceMillis)
    await gather(command)
    return {}
  })
}
