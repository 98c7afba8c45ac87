/**
 * The invariants of channels. At every step: capacity, no banned member, at most eight channels per
 * connection. In every transcript: the output of one activation, in one order for all. After everything
 * has been healthy for a while: members, their views and the channel agree.
 */
import { isDeepStrictEqual } from "node:util"
import { HashMap } from "effect"
import { channelLimits } from "#rpc/channels/limits"
import {
  type ChannelState,
  activeEntry,
  membersOf,
  playerView,
  selfOf,
  settingsView
} from "#entities/channel/model"
import type { ChannelTranscript } from "./channel-client.ts"
import { say } from "./channel-play.ts"
import type { ChannelRecord, ChannelOutputLog } from "./channel-record.ts"
import { channelKey } from "./channel-rules.ts"
import type { Player } from "./player.ts"
import type { Runner } from "./runner.ts"
import type { Simulator } from "./simulator.ts"

const checkState = (
  simulator: Simulator,
  id: string,
  { lists, members, options }: ChannelState
): void => {
  const size = HashMap.size(members)
  if (size > options.maxMembers)
    simulator.fault(`${id} has ${size} members on ${options.maxMembers}`)
  for (const playerId of HashMap.keys(members)) {
    const banned = activeEntry(lists.banned, playerId, simulator.now)
    if (banned !== undefined) simulator.fault(`${playerId} is in ${id} and banned`)
  }
}

/** The state of each channel from its current activation, and the channels of every connection. */
export const checkChannels = (
  simulator: Simulator,
  record: ChannelRecord,
  runners: ReadonlyArray<Runner>
): void => {
  for (const { actor } of record.speaking()) {
    if (actor.state !== undefined) checkState(simulator, actor.id, actor.state)
  }
  record.checkEnds()
  for (const { sockets } of runners) {
    for (const { connection } of sockets) {
      const size = connection?.channels.size ?? 0
      if (size > channelLimits.perConnection) simulator.fault(`a connection is in ${size} channels`)
    }
  }
}

const opens = (frame: string): boolean => frame.startsWith('{"t":"channel_joined"')

/** Voice calls have checks of their own. */
const ofVoice = (frame: string): boolean => frame.startsWith('{"t":"voice_')

/** What a member receives from here until the channel is sent to it again or it leaves. */
const receivedFrom = (
  { items }: ChannelOutputLog,
  from: number,
  playerId: string
): ReadonlyArray<string> => {
  const frames: Array<string> = []
  for (let index = from; index < items.length; index++) {
    const item = items[index]
    if (item === undefined || item.kind === "end") break
    if (item.kind === "exit" && item.player === playerId) break
    const enters = item.kind === "enter" && item.players.some(({ player }) => player === playerId)
    const hears = item.kind === "event" && (item.to === null || item.to.includes(playerId))
    if ((!enters && !hears) || ofVoice(item.frame)) continue
    if (index > from && opens(item.frame)) break
    frames.push(item.frame)
  }
  return frames
}

/** The leading frames that match what was sent. */
const agreed = (whole: ReadonlyArray<string>, part: ReadonlyArray<string>): number => {
  const differs = part.findIndex((frame, i) => frame !== whole[i])
  return differs < 0 ? part.length : differs
}

const isLoss = (frame: string | undefined): boolean =>
  frame?.startsWith('{"t":"channel_closed"') === true && frame.includes('"reason":"lost"')

/**
 * Whether this was sent from that position on. A channel that moved continues from its current state
 * until its members have re-attached and receive it again.
 */
const explains = (
  record: ChannelRecord,
  log: ChannelOutputLog,
  from: number,
  frames: ReadonlyArray<string>,
  playerId: string
): boolean => {
  const rest = frames.slice(agreed(receivedFrom(log, from, playerId), frames))
  if (rest.length === 0 || (rest.length === 1 && isLoss(rest[0]))) return true
  return record.logs.some(
    (next) =>
      next !== log &&
      next.channelId === log.channelId &&
      next.epoch >= log.epoch &&
      agreed(receivedFrom(next, 0, playerId), rest) > 0 &&
      explains(record, next, 0, rest, playerId)
  )
}

/** Positions at which the channel is sent to entering members, by its text. */
const originsOf = (record: ChannelRecord) => {
  const origins = new Map<
    string,
    Array<{ readonly log: ChannelOutputLog; readonly index: number }>
  >()
  for (const log of record.logs) {
    for (const [index, item] of log.items.entries()) {
      if (!("frame" in item) || !opens(item.frame)) continue
      const known = origins.get(item.frame)
      if (known === undefined) origins.set(item.frame, [{ log, index }])
      else known.push({ log, index })
    }
  }
  return origins
}

/** Every transcript is a prefix of the output of one activation. */
const checkTranscripts = (
  simulator: Simulator,
  record: ChannelRecord,
  transcripts: ReadonlyArray<ChannelTranscript>
): void => {
  const origins = originsOf(record)
  for (const { channel, frames, playerId } of transcripts) {
    const from = (origins.get(frames[0] ?? "") ?? []).filter(
      ({ log }) => log.channelId === channelKey(channel)
    )
    if (from.some(({ index, log }) => explains(record, log, index, frames, playerId))) continue
    const log = from.map((origin) => receivedFrom(origin.log, origin.index, playerId))
    simulator.fault(
      `${playerId} received frames of ${channel} that were never sent:\n    ${frames.join("\n    ")}
  sent:\n    ${log.map((whole) => whole.join("\n    ")).join("\n  or:\n    ")}`
    )
  }
}

const messagesOf = ({ items }: ChannelOutputLog): ReadonlyArray<string> =>
  items.flatMap((item) =>
    item.kind === "event" && item.frame.startsWith('{"t":"channel_message"') ? [item.frame] : []
  )

/** All nodes receive the messages of an activation in the same order, each once. */
const checkOrder = (simulator: Simulator, record: ChannelRecord): void => {
  const byActivation = Map.groupBy(record.logs, ({ channelId, epoch }) => `${channelId} ${epoch}`)
  for (const [activation, tolds] of byActivation) {
    const orders = tolds.map(messagesOf).filter((order) => order.length > 0)
    for (const [i, order] of orders.entries()) {
      if (new Set(order).size < order.length) simulator.fault(`${activation} says something twice`)
      for (const other of orders.slice(i + 1)) {
        const [here, there] = [new Set(order), new Set(other)]
        const mine = order.filter((frame) => there.has(frame))
        const theirs = other.filter((frame) => here.has(frame))
        if (!isDeepStrictEqual(mine, theirs)) simulator.fault(`${activation} has two orders`)
      }
    }
  }
}

export const checkChannelTranscripts = (
  simulator: Simulator,
  record: ChannelRecord,
  transcripts: ReadonlyArray<ChannelTranscript>
): void => {
  checkTranscripts(simulator, record, transcripts)
  checkOrder(simulator, record)
}

const checkMember = (simulator: Simulator, state: ChannelState, player: Player): void => {
  const { name } = state.options
  const view = player.channels.views.get(name)
  if (view === undefined) return simulator.fault(`${name} has ${player.id}, who is not in`)
  const { canSend, mutedUntil, settings } = view
  const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1)
  const seen = [Array.from(view.members.values()).toSorted(byId), settings, canSend, mutedUntil]
  const self = selfOf(state, player.id, simulator.now)
  const is = [
    membersOf(state).map(playerView).toSorted(byId),
    settingsView(state.options),
    self.canSend,
    self.mutedUntil
  ]
  if (isDeepStrictEqual(seen, is)) return
  simulator.fault(`${player.id} sees another ${name}:\n  ${JSON.stringify([seen, is])}`)
}

/** Each channel has one owner, and all members see its state. */
export const checkChannelOwners = (
  simulator: Simulator,
  record: ChannelRecord,
  players: ReadonlyArray<Player>
): void => {
  const owners = new Map<string, ChannelState>()
  for (const { actor, process } of record.speaking()) {
    const { id, state } = actor
    if (state === undefined) continue
    if (owners.has(id)) simulator.fault(`${id} has two owners, one on ${process.name}`)
    owners.set(id, state)
    for (const player of players) {
      const member = HashMap.get(state.members, player.id)
      if (member._tag === "None") continue
      if (member.value.attachment?.connectionId !== player.connectionId) {
        simulator.fault(`${id} has ${player.id} on another connection`)
      }
      checkMember(simulator, state, player)
    }
  }
  for (const player of players) {
    if (player.welcome && !player.channels.settled)
      simulator.fault(`${player.id} is still on its way into channels`)
    for (const name of player.channels.views.keys()) {
      const state = owners.get(channelKey(name))
      if (state !== undefined && HashMap.has(state.members, player.id)) continue
      simulator.fault(`${player.id} believes to be in ${name}`)
    }
  }
}

/** Every member sends a message; returns a check that all members received those of all speakers. */
export const sayAll = (simulator: Simulator, players: ReadonlyArray<Player>): (() => void) => {
  const said = players.flatMap((player) =>
    Array.from(player.channels.views, ([name, view]) => {
      const hearers = players.filter(({ channels }) => channels.views.has(name))
      return { from: player.id, name, n: say(player, name), canSend: view.canSend, hearers }
    })
  )
  return () => {
    for (const { canSend, from, hearers, n, name } of said) {
      for (const { channels, id } of hearers) {
        const heard = channels.heard(name, from) === n
        if (heard !== canSend) simulator.fault(`${id} received of ${from} in ${name}: ${heard}`)
      }
    }
  }
}
