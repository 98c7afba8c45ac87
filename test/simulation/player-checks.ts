/**
 * The invariants of players whom moderators have changed. After everything has been healthy for a while: a
 * banned player is nowhere, and rooms, channels and connections have the name and the age of each other one.
 */
import { HashMap } from "effect"
import type { ChannelRecord } from "./channel-record.ts"
import type { Player } from "./player.ts"
import type { PlayerRecord, PlayerRecords } from "./player-records.ts"
import type { RoomRecord } from "./record.ts"
import type { Runner } from "./runner.ts"
import type { Simulator } from "./simulator.ts"

interface Seat {
  readonly name: string
  readonly displayName: string
  /** Whether peers reach the player through a relay only; undefined where there are none. */
  readonly relayOnly?: boolean
  /** Players created the channel. */
  readonly isOpenChat: boolean
}

function* seatsOf(
  id: string,
  record: RoomRecord,
  channels: ChannelRecord,
  runners: ReadonlyArray<Runner>
): Generator<Seat> {
  for (const { actor } of record.speaking()) {
    const member = actor.state?.closed === null ? actor.state.members.get(id) : undefined
    if (member !== undefined) yield { ...member, name: actor.id, isOpenChat: false }
  }
  for (const { actor } of channels.speaking()) {
    if (actor.state === undefined) continue
    const member = HashMap.get(actor.state.members, id)
    const isOpenChat = !actor.state.options.managed
    if (member._tag === "Some") {
      yield { displayName: member.value.displayName, name: actor.id, isOpenChat }
    }
  }
  for (const { name, process, sockets } of runners) {
    for (const { connection } of process.state === "dead" ? [] : sockets) {
      if (connection?.playerId !== id) continue
      const { displayName, relayOnly } = connection
      yield { displayName, relayOnly, name: `a connection on ${name}`, isOpenChat: false }
    }
  }
}

const wrongOf = (seat: Seat, { declaredAgeBand, displayName, isBanned }: PlayerRecord) => {
  const isChild = declaredAgeBand === "child"
  if (isBanned) return "is banned"
  if (seat.displayName !== displayName) return `is ${displayName}, not ${seat.displayName}`
  if (seat.relayOnly !== undefined && seat.relayOnly !== isChild) return "may show its address"
  if (seat.isOpenChat && isChild) return "is a child"
  return undefined
}

export const checkPlayers = (
  simulator: Simulator,
  records: PlayerRecords,
  players: ReadonlyArray<Player>,
  all: {
    readonly record: RoomRecord
    readonly channels: ChannelRecord
    readonly runners: ReadonlyArray<Runner>
  }
): void => {
  for (const { id, welcome } of players) {
    const its = records.of(id)
    if (its.isBanned && welcome) simulator.fault(`${id} is banned and online`)
    for (const seat of seatsOf(id, all.record, all.channels, all.runners)) {
      const wrong = wrongOf(seat, its)
      if (wrong !== undefined) simulator.fault(`${id} in ${seat.name} ${wrong}`)
    }
  }
}
