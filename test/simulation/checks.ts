/**
 * The invariants of rooms. At every step: capacity, no seat twice, host and grace by the rules. In every
 * transcript: each event of an activation once, in order. After everything has been healthy for a
 * while: every request has a reply, and players, sessions, rooms and rows agree.
 */
import { isDeepStrictEqual } from "node:util"
import { Effect, Exit } from "effect"
import { receives } from "#entities/room/messages"
import type { RoomState } from "#entities/room/model"
import { roomView } from "#entities/room/model"
import { snapshotDeadlineMillis } from "#entities/write-behind"
import { checkRoom } from "../support/room-harness.ts"
import { type Cluster, type Outage, stepMillis } from "./faults.ts"
import type { PlayerRecords } from "./player-records.ts"
import type { Acknowledged, Ledger, Player, Transcript } from "./player.ts"
import type { RoomRecord, RoomOutputLog } from "./record.ts"
import type { Simulator } from "./simulator.ts"

/** The state of each room, from its current activation. */
export const checkRooms = (simulator: Simulator, record: RoomRecord): void => {
  for (const { actor } of record.speaking()) {
    if (actor.state === undefined || actor.state.closed !== null) continue
    try {
      checkRoom(actor.state, simulator.now, false)
    } catch (error) {
      simulator.fault(`${actor.id} of ${actor.epoch}: ${String(error)}`)
    }
  }
}

/** The position in the output of an activation at which a connection enters the room. */
interface Entry {
  readonly log: RoomOutputLog
  readonly index: number
}

const entriesOf = (record: RoomRecord): ReadonlyMap<string, ReadonlyArray<Entry>> => {
  const entries = new Map<string, Array<Entry>>()
  for (const log of record.logs) {
    for (const [index, item] of log.items.entries()) {
      if (item.kind !== "enter") continue
      const key = `${log.roomId} ${item.player} ${item.connection}`
      const known = entries.get(key)
      if (known === undefined) entries.set(key, [{ log, index }])
      else known.push({ log, index })
    }
  }
  return entries
}

/** What a player receives from its entry until it enters again or leaves. */
const receivedFrom = ({ index, log }: Entry, playerId: string): ReadonlyArray<string> => {
  const frames: Array<string> = []
  for (const item of log.items.slice(index)) {
    if (item.kind === "enter" && item.player === playerId) {
      if (frames.length > 0) break
      frames.push(item.frame)
    } else if (item.kind === "exit" && item.player === playerId) {
      break
    } else if (item.kind === "event") {
      if (receives(item, playerId)) frames.push(item.frame)
    }
  }
  return frames
}

const messageForm = /^\{"t":"(?:channel_)?message"/

const isLoss = (frame: string | undefined): boolean =>
  frame?.includes('"t":"room_closed"') === true && frame.includes('"reason":"lost"')

const isRemoval = (frame: string | undefined): boolean =>
  frame?.startsWith('{"t":"removed"') === true

/** No player receives a message twice: every sent message is unique. */
export const checkDoubled = (
  simulator: Simulator,
  transcripts: ReadonlyArray<{ readonly playerId: string; readonly frames: ReadonlyArray<string> }>
): void => {
  for (const { frames, playerId } of transcripts) {
    const messages = frames.filter((frame) => messageForm.test(frame))
    const twice = messages.find((frame, i) => messages.indexOf(frame) < i)
    if (twice !== undefined) simulator.fault(`${playerId} receives twice: ${twice}`)
  }
}

const isDisabled = ({ activations }: RoomRecord, roomId: string): boolean =>
  activations.get(roomId)?.some(({ actor }) => actor.state?.closed === "feature_disabled") === true

/**
 * A room may be lost only if both the database and a runner lost it. A node that missed the end of a room
 * whose feature was turned off finds no row of it either.
 */
export const checkLosses = (
  simulator: Simulator,
  record: RoomRecord,
  ledger: Ledger,
  { bereft, crashed }: Losses
): void => {
  if (bereft && crashed) return
  for (const { frames, playerId, roomId } of ledger.transcripts) {
    if (frames.some(isLoss) && !isDisabled(record, roomId))
      simulator.fault(`${playerId} receives that ${roomId} is lost`)
  }
}

/** The transcript without the events for a player who missed the end of its seat. */
const withoutMissedEnd = (part: ReadonlyArray<string>): ReadonlyArray<string> => {
  const last = part.at(-1)
  if (isLoss(last)) return part.slice(0, -1)
  const isRemoved = last?.startsWith('{"t":"player_left"') === true && isRemoval(part.at(-2))
  return isRemoved ? part.slice(0, -2) : part
}

const begins = (whole: ReadonlyArray<string>, part: ReadonlyArray<string>): boolean => {
  const isSent = (frames: ReadonlyArray<string>) => frames.every((frame, i) => frame === whole[i])
  return isSent(part) || isSent(withoutMissedEnd(part))
}

/** Every transcript is a prefix of the output of one activation, and epochs only increase. */
export const checkTranscripts = (
  simulator: Simulator,
  record: RoomRecord,
  ledger: Ledger
): void => {
  const entries = entriesOf(record)
  const epochs = new Map<string, number>()
  for (const transcript of ledger.transcripts) {
    const { connectionId, playerId, roomId } = transcript
    const key = `${roomId} ${playerId} ${connectionId}`
    const origins = (entries.get(key) ?? []).filter((entry) =>
      begins(receivedFrom(entry, playerId), transcript.frames)
    )
    if (origins.length === 0) simulator.fault(unexplained(entries.get(key) ?? [], transcript))
    const epoch = Math.max(...origins.map(({ log }) => log.epoch))
    if (epoch < (epochs.get(key) ?? 0))
      simulator.fault(`${playerId} receives an older ${roomId} again`)
    epochs.set(key, Math.min(...origins.map(({ log }) => log.epoch)))
  }
}

const unexplained = (entries: ReadonlyArray<Entry>, { frames, playerId, roomId }: Transcript) => {
  const log = entries.map((entry) => receivedFrom(entry, playerId).join("\n    "))
  return `${playerId} received frames of ${roomId} that were never sent:\n    ${frames.join(
    "\n    "
  )}\n  log:\n    ${log.join("\n  or:\n    ")}`
}

/** No request is without a reply, except those waiting in a queue. */
export const checkAnswers = (
  simulator: Simulator,
  players: ReadonlyArray<Player>,
  but: string
): void => {
  for (const { id, pending } of players) {
    for (const { sentAt, t } of pending.values()) {
      if (t === but) continue
      simulator.fault(`${id} has no answer to ${t} after ${simulator.now - sentAt} ms`)
    }
  }
}

/** A room as all of its members should see it. */
const checkRoomOf = (
  simulator: Simulator,
  state: RoomState,
  players: ReadonlyMap<string, Player>
): void => {
  const { id } = state.settings
  for (const member of state.members.values()) {
    const player = players.get(member.id)
    if (player?.view?.id !== id) {
      simulator.fault(`${id} keeps a seat of ${member.id}, who is in ${player?.view?.id ?? "none"}`)
    } else if (member.attachment?.connectionId !== player.connectionId) {
      simulator.fault(`${id} has ${member.id} on another connection`)
    } else if (!isDeepStrictEqual(player.view, roomView(state))) {
      const [seen, is] = [player.view, roomView(state)].map((view) => JSON.stringify(view))
      simulator.fault(`${member.id} sees another room:\n    ${seen}\n    ${is}`)
    }
  }
}

/** Each room has one owner, and all members see its state. */
export const checkOwners = (
  simulator: Simulator,
  record: RoomRecord,
  players: ReadonlyArray<Player>
): void => {
  const byId = new Map(players.map((player) => [player.id, player]))
  const owners = new Map<string, RoomState>()
  for (const { actor, process } of record.speaking()) {
    const { state } = actor
    if (state === undefined || state.closed !== null) continue
    if (owners.has(actor.id)) simulator.fault(`${actor.id} has two owners, one on ${process.name}`)
    owners.set(actor.id, state)
    checkRoomOf(simulator, state, byId)
  }
  for (const { id, view } of players) {
    if (view !== undefined && owners.get(view.id)?.members.has(id) !== true) {
      simulator.fault(`${id} believes to be in ${view.id}`)
    }
  }
}

/**
 * Asks each player session where its player is. A seat in a room that has not woken since its runner
 * died counts until the room wakes.
 */
export const checkSessions = (
  simulator: Simulator,
  record: RoomRecord,
  players: ReadonlyArray<Player>,
  records: PlayerRecords
): void => {
  const awake = new Set(record.speaking().map(({ actor }) => actor.id))
  for (const player of players) {
    if (records.of(player.id).isBanned) continue
    const { connection, runner } = player.socket ?? {}
    if (runner === undefined || connection === undefined) {
      simulator.fault(`${player.id} is not online`)
      continue
    }
    const place = { kind: "ticket", ticketId: "probe" } as const
    const { playerId, reservations } = connection
    runner.run(
      Effect.gen(function* () {
        const exit = yield* Effect.exit(reservations.claim(place))
        const where = Exit.isSuccess(exit) ? "none" : JSON.stringify(exit.cause)
        if (Exit.isSuccess(exit)) yield* reservations.release(place)
        const seen = player.view?.id
        const asleep = Array.from(record.activations.keys()).some(
          (id) => where.includes(id) && !awake.has(id)
        )
        const agrees = seen === undefined ? where === "none" || asleep : where.includes(seen)
        if (!agrees)
          simulator.fault(`${playerId} is in ${seen ?? "none"}, its session says ${where}`)
        else simulator.note(`${playerId} agrees with its session`)
      })
    )
  }
}

/** How long a change may wait for its snapshot, and how long the write may take. */
const windowMillis = 1000

/** The part that was acknowledged so long before the next fault that it must survive. */
export const safeOf = <A extends { readonly at: number }>(
  acknowledged: ReadonlyArray<A>,
  outages: ReadonlyArray<Outage>
): ReadonlyArray<A> =>
  acknowledged.filter(
    ({ at }) => !outages.some(({ from, to }) => from < at + windowMillis && to > at - windowMillis)
  )

/** What was acknowledged a second before the next fault must survive. */
export const checkWrites = (
  record: RoomRecord,
  simulator: Simulator,
  ledger: Ledger,
  outages: ReadonlyArray<Outage>
): void => {
  const safe = safeOf(ledger.acknowledged, outages)
  for (const { actor } of record.speaking()) {
    const { state } = actor
    if (state === undefined || state.closed !== null) continue
    for (const { n, playerId, roomId } of safe) {
      if (roomId !== actor.id) continue
      const value = Number(state.sharedState.entries.get(playerId)?.value ?? 0)
      if (value < n) simulator.fault(`${roomId} has lost ${n} of ${playerId}: it has ${value}`)
    }
  }
}

export type Losses = Pick<Cluster, "bereft" | "crashed">

/** A room may forget what it has acknowledged within the promised time. */
export const checkSpan = (
  simulator: Simulator,
  roomId: string,
  forgotten: ReadonlyArray<Pick<Acknowledged, "sentAt" | "at">>
): void => {
  const last = Math.max(...forgotten.map(({ sentAt }) => sentAt))
  const millis = last - Math.min(...forgotten.map(({ at }) => at))
  if (millis > snapshotDeadlineMillis)
    simulator.fault(`${roomId} has forgotten ${millis} ms of writes`)
}

/**
 * Checks what a waking room has forgotten: no acknowledged leave, and of acknowledged writes only those of
 * the last second, whatever happened to runners or to the database. If both were lost, the room may
 * wake from the state of another runner, or not at all.
 */
export const checkForgotten = (
  simulator: Simulator,
  record: RoomRecord,
  ledger: Ledger,
  { bereft, crashed }: Losses
): void => {
  if (bereft && crashed) return
  for (const [id, activations] of record.activations) {
    for (const [index, { wokenAt, wokenFrom: state }] of activations.entries()) {
      if (state === undefined) continue
      const since = activations[index - 1]?.wokenAt ?? 0
      const of = (list: ReadonlyArray<Acknowledged>) =>
        list.filter(({ at, roomId, sentAt }) => roomId === id && sentAt >= since && at < wokenAt)
      for (const { playerId, sentAt } of of(ledger.left)) {
        const seat = state.members.get(playerId)
        if (seat !== undefined && seat.joinedAt < sentAt - stepMillis)
          simulator.fault(`${playerId} left ${id}: in`)
      }
      const forgotten = of(ledger.acknowledged).filter(
        ({ n, playerId }) => Number(state.sharedState.entries.get(playerId)?.value ?? 0) < n
      )
      checkSpan(simulator, id, forgotten)
    }
  }
}

/** A player who is a child now needs a relay, and the simulation has none. */
const unrelayed = ["voiceJoin voice_unavailable", "iceServers turn_unavailable"]

/** Holds while there are no faults: no request fails, and no seat goes to an absent player. */
export const checkCalm = (
  simulator: Simulator,
  record: RoomRecord,
  ledger: Ledger,
  moderated: boolean
): void => {
  for (const outcome of ledger.outcomes.keys()) {
    if (moderated && unrelayed.includes(outcome)) continue
    if (outcome.endsWith("unavailable")) simulator.fault(`${outcome}, and nothing was wrong`)
  }
  for (const { at, playerId, roomId } of record.matched) {
    const waited = ledger.waits.some(
      (wait) => wait.playerId === playerId && wait.from <= at && at <= wait.until
    )
    if (!waited) simulator.fault(`${roomId} has a seat for ${playerId}, who has not waited`)
  }
}
