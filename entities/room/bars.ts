/**
 * Players whom a room has removed. A bar keeps its player from joining until it ends; matchmaking never
 * seats the player here again, also after that. Pure; part of the room's state machine.
 */
import { roomLimits } from "#rpc/rooms/limits"
import type { RoomState } from "./model.ts"
import type { Rights } from "./rights.ts"

/** Whether the player cannot join now. */
export const isBarred = ({ rights }: RoomState, playerId: string, now: number): boolean => {
  const until = rights.bars.get(playerId)
  return until === null || (until !== undefined && now < until)
}

/** Whether the room has removed the player, so that matchmaking must find another room. */
export const wasRemoved = ({ rights }: RoomState, playerId: string): boolean =>
  rights.bars.has(playerId)

/** The player whose bar matters least: it ends first. Bans are the last, the oldest of them first. */
const leastOf = (bars: Rights["bars"]): string | undefined => {
  let least: { readonly id: string; readonly until: number } | undefined
  for (const [id, end] of bars) {
    const until = end ?? Number.POSITIVE_INFINITY
    if (least === undefined || until < least.until) least = { id, until }
  }
  return least?.id
}

/** Bars a player until then; null for the room's life. A bar never becomes shorter. */
export const withBar = (rights: Rights, playerId: string, until: number | null): Rights => {
  if (rights.bars.get(playerId) === null) return rights
  const bars = new Map(rights.bars)
  if (!bars.has(playerId) && bars.size >= roomLimits.barsMax) {
    const least = leastOf(bars)
    if (least !== undefined) bars.delete(least)
  }
  return { ...rights, bars: bars.set(playerId, until) }
}

/** Forgets that the room has removed the player. */
export const withoutBar = (rights: Rights, playerId: string): Rights => {
  if (!rights.bars.has(playerId)) return rights
  const bars = new Map(rights.bars)
  bars.delete(playerId)
  return { ...rights, bars }
}
