/**
 * The load generator: one process for one server. It seats all players of all shapes, then makes as many
 * runs as the parent requests, over the same sockets and rooms, and is idle in between.
 */
import { createHistogram } from "node:perf_hooks"
import * as Schema from "effect/Schema"
import type { Player } from "../servers/peer.ts"
import { peers } from "../servers/peers.ts"
import { clockMicros } from "../wire/message.ts"
import { Command, type Figures, type Report, type Shape } from "../wire/protocol.ts"
import { makeSchedule } from "./schedule.ts"

const scheduleSeed = 20_261_121
const drainMs = 2_000

const report = (message: Report): void => {
  process.send?.(message)
}

const fail = (error: unknown): void => {
  report({ t: "failed", message: error instanceof Error ? error.message : String(error) })
}

/** The players of one shape, room after room. */
interface Crowd {
  readonly shape: Shape
  readonly players: ReadonlyArray<Player>
}

let crowds: ReadonlyArray<Crowd> = []
let echoes = false
let onDelivery: (crowd: number, player: number, ts: number) => void = () => {}

async function join(command: Extract<Command, { t: "join" }>): Promise<void> {
  const peer = peers.find((candidate) => candidate.name === command.server)
  if (peer === undefined) throw new Error(`no server named ${command.server}`)
  echoes = peer.echoes === true
  crowds = await Array.fromAsync(command.shapes, async (shape, crowd) => {
    const rooms = await Array.fromAsync({ length: shape.rooms }, (_, room) =>
      peer.joinRoom({
        target: command.target,
        name: `room-${crowd}-${room}`,
        size: shape.players,
        onDelivery: (member, ts) => onDelivery(crowd, room * shape.players + member, ts),
        onLost: fail
      })
    )
    return { shape, players: rooms.flat() }
  })
  report({ t: "joined" })
}

/** How many deliveries each player is owed: what its room sent, less what it sent itself. */
function expectedPerPlayer({ rooms, players }: Shape, sent: ReadonlyArray<number>): Array<number> {
  if (echoes) return [...sent]
  const perRoom = Array.from({ length: rooms }, () => 0)
  sent.forEach((count, player) => (perRoom[Math.floor(player / players)]! += count))
  return sent.map((count, player) => perRoom[Math.floor(player / players)]! - count)
}

const sum = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b, 0)

/** Runs `step` every millisecond until it returns true. */
const every = (step: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const timer = setInterval(() => {
      if (!step()) return
      clearInterval(timer)
      resolve()
    }, 1)
  })

async function run(options: Extract<Command, { t: "run" }>): Promise<Figures> {
  const { leadMs, rate, windowMs } = options
  const { players, shape } = crowds[options.shape]!
  const schedule = makeSchedule(players.length, rate, scheduleSeed)
  const latency = createHistogram()
  const late = createHistogram()
  const sent = players.map(() => 0)
  const received = players.map(() => 0)
  let total = 0
  const start = clockMicros()
  const opensAt = start + leadMs * 1000
  const closesAt = opensAt + windowMs * 1000

  onDelivery = (crowd, player, ts) => {
    // What a run before this one sent too late is of no account to this one.
    if (crowd !== options.shape || ts < start) return
    received[player]!++
    total++
    if (ts >= opensAt) latency.record(Math.max(1, clockMicros() - ts))
  }

  let next = 0
  /** Sends what is due and returns the time up to which it did. */
  const sendDue = (): number => {
    const now = clockMicros()
    for (; ; next++) {
      const at = start + Math.floor(schedule.at(next))
      if (at > now || at >= closesAt) return now
      const player = schedule.player(next)
      players[player]!.send(sent[player]!++, at)
      if (at >= opensAt) late.record(Math.max(1, now - at))
    }
  }
  const sendUntil = (end: number): Promise<void> => every(() => sendDue() >= end)

  await sendUntil(opensAt)
  report({ t: "windowOpened" })
  const before = { wall: clockMicros(), cpu: process.cpuUsage(), total }
  await sendUntil(closesAt)
  report({ t: "windowClosed" })
  const cpu = process.cpuUsage(before.cpu)
  const wall = clockMicros() - before.wall
  const windowDeliveries = total - before.total

  const owed = expectedPerPlayer(shape, sent)
  const expected = sum(owed)
  const giveUp = clockMicros() + drainMs * 1000
  await every(() => total >= expected || clockMicros() >= giveUp)
  return {
    windowDeliveries,
    expected,
    delivered: total,
    miscounted: sum(owed.map((count, player) => Math.abs(count - received[player]!))),
    latencyP50: latency.percentile(50),
    latencyP99: latency.percentile(99),
    latencyP999: latency.percentile(99.9),
    latencyMax: latency.max,
    lateP99: late.percentile(99),
    busyPercent: ((cpu.user + cpu.system) / wall) * 100
  }
}

const decodeCommand = Schema.decodeUnknownSync(Command)

async function obey(message: unknown): Promise<void> {
  const command = decodeCommand(message)
  if (command.t === "join") await join(command)
  else report({ t: "finished", figures: await run(command) })
}

process.on("message", (message) => void obey(message).catch(fail))
process.once("disconnect", () => process.exit())
