/**
 * Who does not receive what a member of a channel says: the members whom it does not reach. The sender
 * learns nothing of it.
 */
import { HashMap } from "effect"
import { blocksFrom, noBlocks, reach } from "../reach.ts"
import { type ChannelState, memberOf } from "./model.ts"

/** Sets whom a member has blocked. */
export const withBlocks = (
  state: ChannelState,
  playerId: string,
  ids: ReadonlyArray<string>
): ChannelState => {
  if (ids.length === 0 && !state.blocks.has(playerId)) return state
  const blocks = new Map(state.blocks)
  if (ids.length === 0) blocks.delete(playerId)
  else blocks.set(playerId, blocksFrom(ids))
  return { ...state, blocks }
}

/** Forgets whom players have blocked who are members no longer. */
export const withoutBlocks = (
  { blocks }: ChannelState,
  players: ReadonlyArray<{ readonly id: string }>
): ChannelState["blocks"] => {
  if (!players.some(({ id }) => blocks.has(id))) return blocks
  const left = new Map(blocks)
  for (const { id } of players) left.delete(id)
  return left
}

/** The players in this list who are members; the shorter of both lists is read. */
const membersAmong = (state: ChannelState, ids: ReadonlySet<string>): ReadonlyArray<string> =>
  HashMap.size(state.members) < ids.size
    ? Array.from(HashMap.keys(state.members)).filter((id) => ids.has(id))
    : Array.from(ids).filter((id) => memberOf(state, id) !== undefined)

/** The members whom content of this player does not reach. Only those with a block are looked at. */
export const unreachedFrom = (state: ChannelState, id: string): ReadonlyArray<string> => {
  if (state.blocks.size === 0) return []
  const blocksOf = (playerId: string) => state.blocks.get(playerId) ?? noBlocks
  const from = { id, blocks: blocksOf(id) }
  const candidates = new Set([...state.blocks.keys(), ...membersAmong(state, from.blocks)])
  return Array.from(candidates).filter(
    (member) => !reach(from, { id: member, blocks: blocksOf(member) }, "send")
  )
}
