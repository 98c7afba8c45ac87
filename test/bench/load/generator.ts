/**
 * The load generator: one process for one server and one load. It seats all players, then makes as
 * many runs as the parent requests, over the same sockets and rooms, and is idle in between.
 */
import { createHistogram } from "node:perf_hooks"
import * as Schema from "effect/Schema"
import type { Player } from "../servers/peer.ts"
import { peers } from "../servers/peers.ts"
import { clockMicros } from "./message.ts"
import { Command, type Figures, type Load, type Report } from "./protocol.ts"
import { makeSchedule } from "./schedule.ts"

const scheduleSeed = 20_261_121
const drainMs = 5_000

const report = (message: Report): void => {
  process.send?.(message)
}

const fail = (error: unknown): void => {
  report({ t: "failed", message: error instanceof Error ? error.message : String(error) })
}

let players: ReadonlyArray<Player> = []
let load: Load = { rooms: 0, players: 0, rate: 0 }
let onDelivery: (player: number, ts: number) => void = () => {}

async function join(command: Extract<Command, { t: "join" }>): Promise<void> {
  const peer = peers.find((candidate) => candidate.name === command.server)
  if (peer === undefined) throw new Error(`no server named ${command.server}`)
  load = command.load
  const rooms = await Array.fromAsync({ length: load.rooms }, (_, room) =>
    peer.joinRoom({
      target: command.target,
      name: `room-${room}`,
      size: load.players,
      onDelivery: (member, ts) => onDelivery(room * load.players + member, ts),
      onLost: fail
    })
  )
  players = rooms.flat()
  report({ t: "joined" })
}

/** How many deliveries each player is owed: what its room sent, less what it sent itself. */
function expectedPerPlayer(sent: ReadonlyArray<number>): Array<number> {
  const perRoom = Array.from({ length: load.rooms }, () => 0)
  sent.forEach((count, player) => (perRoom[Math.floor(player / load.players)]! += count))
  return sent.map((count, player) => perRoom[Math.floor(player / load.players)]! - count)
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

async function run(leadMs: number, windowMs: number): Promise<Figures> {
  const schedule = makeSchedule(players.length, load.rate, scheduleSeed)
  const latency = createHistogram()
  const late = createHistogram()
  const sent = players.map(() => 0)
  const received = players.map(() => 0)
  let total = 0
  const start = clockMicros()
  const opensAt = start + leadMs * 1000
  const closesAt = opensAt + windowMs * 1000

  onDelivery = (player, ts) => {
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

  const owed = expectedPerPlayer(sent)
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
    latencyMax: latency.max,
    lateP99: late.percentile(99),
    busyPercent: ((cpu.user + cpu.system) / wall) * 100
  }
}

const decodeCommand = Schema.decodeUnknownSync(Command)

async function obey(message: unknown): Promise<void> {
  const command = decodeCommand(message)
  if (command.t === "join") await join(command)
  else report({ t: "finished", figures: await run(command.leadMs, command.windowMs) })
}

process.on("message", (message) => void obey(message).catch(fail))
process.once("disconnect", () => process.exit())
