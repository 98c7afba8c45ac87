/**
 * The players of the back-pressure benchmark, in a process of their own: rooms with steady traffic,
 * and one member of one room who offends in some windows and is quiet in the others.
 */
import { setTimeout as wait } from "node:timers/promises"
import * as Schema from "effect/Schema"
import { clockMicros, MessageTemplate, messageType } from "../wire/message.ts"
import { Target } from "../wire/protocol.ts"
import { makeSchedule } from "../load/schedule.ts"
import type { LoadSocket, SocketProtocol } from "../wire/socket.ts"
import { percentile } from "./figures.ts"
import { Offender } from "./offender.ts"
import { busyPercent, inFlight } from "./pace.ts"
import { ask, connectPlayer, signIn } from "./service.ts"
import { fail, obey } from "./worker.ts"

const Offence = Schema.Literals(["none", "stops reading", "floods"])
export type Offence = typeof Offence.Type

export const Command = Schema.Union([
  /** Rooms of `players`, each sending `rate` messages of about `bytes` a second. */
  Schema.Struct({
    t: Schema.Literal("seat"),
    target: Target,
    rooms: Schema.Int,
    players: Schema.Int,
    rate: Schema.Int,
    bytes: Schema.Int
  }),
  Schema.Struct({ t: Schema.Literal("window"), millis: Schema.Int, offence: Offence })
])
export type Command = typeof Command.Type

export const Done = Schema.Struct({})

export const Window = Schema.Struct({
  /** Milliseconds from when a message was due, to all members but the offender. */
  p50: Schema.Number,
  p99: Schema.Number,
  max: Schema.Number,
  lateP99: Schema.Number,
  /** Sum over members of what they got too little or too much. */
  miscounted: Schema.Int,
  busyPercent: Schema.Number,
  /** How the offender was closed, each time. */
  closed: Schema.Array(
    Schema.Struct({
      code: Schema.Int,
      bytes: Schema.Int,
      warnings: Schema.Int,
      afterSeconds: Schema.Number
    })
  )
})
export type Window = typeof Window.Type

interface Member {
  readonly room: number
  readonly socket: LoadSocket
  readonly template: MessageTemplate
}

type Seat = Extract<Command, { t: "seat" }>

const mode = "crowd"
const scheduleSeed = 20_261_121
const roomsAtATime = 4
const drainMillis = 10_000
const maxPileUpMillis = 30_000
/** How long the offender stays away after it was closed for a flood. */
const restMillis = 500

let load: Seat | undefined
let members: ReadonlyArray<Member> = []
let offender: Offender | undefined
let offenderRoom = ""
let onDelivery: (member: number, ts: number) => void = () => undefined
/** A member of the offender's room heard that its connection is gone. */
let onDisconnected: () => void = () => undefined

const ears: SocketProtocol = {
  answer: (text) => {
    if (text.startsWith('{"t":"player_disconnected"')) onDisconnected()
    return undefined
  }
}

/** The offender sits in room 0, in place of its last member, and sends nothing of use. */
async function seat(command: Seat): Promise<void> {
  load = command
  const { bytes, players, rooms, target } = command
  const tokens = await signIn(target, rooms * players)
  const padding = "x".repeat(bytes)
  const frame = (data: string): string =>
    `{"t":"send","type":"${messageType}","data":{"p":"${padding}","m":${data}}}`
  const join = async (index: number, roomId: string | undefined): Promise<string> => {
    const room = Math.floor(index / players)
    // The offender's place stands empty: the members after it come one forward.
    const number = room === 0 ? index : index - 1
    const events = { onDelivery: (ts: number) => onDelivery(number, ts), onLost: fail }
    const protocol = index === 0 ? ears : {}
    const socket = await connectPlayer(target, tokens[index] ?? "", events, protocol)
    seated[number] = { room, socket, template: new MessageTemplate(frame) }
    return ask(socket, roomId === undefined ? { t: "create", mode } : { t: "join", roomId })
  }
  const seated: Array<Member> = []
  await inFlight(rooms, roomsAtATime, async (room) => {
    const roomId = await join(room * players, undefined)
    const last = room === 0 ? players - 1 : players
    for (let i = 1; i < last; i++) await join(room * players + i, roomId)
    if (room === 0) offenderRoom = roomId
  })
  members = seated
  offender = new Offender(target, tokens[players - 1] ?? "")
  await offender.enter({ t: "join", roomId: offenderRoom })
}

const now = (): number => performance.now() / 1000

/** Stops reading until it is closed, then reads what there is. */
async function stopReading(offender: Offender): Promise<Window["closed"]> {
  const started = now()
  const disconnected = new Promise<void>((resolve) => (onDisconnected = resolve))
  offender.pause()
  await disconnected
  const afterSeconds = now() - started
  return [{ ...(await offender.readOn()), afterSeconds }]
}

/** Floods, comes back and floods again, until the window is over. */
async function floodAgain(offender: Offender, until: number): Promise<Window["closed"]> {
  const closed: Array<Window["closed"][number]> = []
  for (let started = now(); started < until; started = now()) {
    if (closed.length > 0) await offender.enter({ t: "resume", roomId: offenderRoom })
    const end = await offender.flood()
    closed.push({ ...end, afterSeconds: now() - started })
    await wait(restMillis)
  }
  return closed
}

async function offend(offence: Offence, millis: number): Promise<Window["closed"]> {
  if (offender === undefined || offence === "none") return []
  const closed = await (offence === "floods"
    ? floodAgain(offender, now() + millis / 1000)
    : stopReading(offender))
  await offender.enter({ t: "resume", roomId: offenderRoom })
  return closed
}

/** What each member is owed: what its room was sent, less its own. */
function owed(sent: ReadonlyArray<number>): ReadonlyArray<number> {
  const perRoom = new Map<number, number>()
  members.forEach(({ room }, i) => perRoom.set(room, (perRoom.get(room) ?? 0) + (sent[i] ?? 0)))
  return members.map(({ room }, i) => (perRoom.get(room) ?? 0) - (sent[i] ?? 0))
}

const sum = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b, 0)

async function window(millis: number, offence: Offence, { rate }: Seat): Promise<Window> {
  const schedule = makeSchedule(members.length, rate, scheduleSeed)
  const sent = members.map(() => 0)
  const received = members.map(() => 0)
  const latency: Array<number> = []
  const late: Array<number> = []
  onDelivery = (member, ts) => {
    received[member] = (received[member] ?? 0) + 1
    latency.push(clockMicros() - ts)
  }
  const start = clockMicros()
  const traffic = { endsAt: start + millis * 1000 }
  const send = async (): Promise<void> => {
    for (let next = 0; ;) {
      const time = clockMicros()
      for (; start + schedule.at(next) <= time; next++) {
        const at = Math.floor(start + schedule.at(next))
        if (at >= traffic.endsAt) return
        const player = schedule.player(next)
        const member = members[player]
        member?.socket.write(member.template.fill(sent[player] ?? 0, at))
        sent[player] = (sent[player] ?? 0) + 1
        late.push(time - at)
      }
      await wait(1)
    }
  }
  // A member that stops reading is closed when enough has piled up: so long the traffic goes on.
  if (offence === "stops reading") traffic.endsAt += maxPileUpMillis * 1000
  const offending = offend(offence, millis).finally(() => {
    traffic.endsAt = Math.max(start + millis * 1000, clockMicros())
  })
  const busy = await busyPercent(send)
  const closed = await offending
  const expected = owed(sent)
  for (let waited = 0; sum(received) < sum(expected) && waited < drainMillis; waited += 10) {
    await wait(10)
  }
  return {
    p50: percentile(latency, 50) / 1000,
    p99: percentile(latency, 99) / 1000,
    max: percentile(latency, 100) / 1000,
    lateP99: percentile(late, 99) / 1000,
    miscounted: sum(expected.map((count, i) => Math.abs(count - (received[i] ?? 0)))),
    busyPercent: busy,
    closed
  }
}

const decodeCommand = Schema.decodeUnknownSync(Command)

if (import.meta.main) {
  obey(async (input) => {
    const command = decodeCommand(input)
    if (command.t === "window") {
      if (load === undefined) throw new Error("nobody has a seat")
      return window(command.millis, command.offence, load)
    }
    await seat(command)
    return {}
  })
}
