/**
 * The reach rule: whether what one player does may touch another. Every path that hands something from
 * one player to another asks this function, so that a block counts everywhere.
 */

/** What the rule reads of a player. */
export interface Reachable {
  readonly id: string
  /** The players whom this player has blocked; absent without any. */
  readonly blocks?: ReadonlySet<string> | undefined
}

/**
 * - `send`: content from one player to another, such as a message or a signal.
 * - `join`: the way into something whose host is the other player.
 */
export type Verb = "send" | "join"

/** The blocks of a player without any. */
export const noBlocks: ReadonlySet<string> = new Set()

/** The blocks of a member whom no connection has brought back since its room woke. It may have some. */
export const unknownBlocks: ReadonlySet<string> = new Set()

/** The set of a list of blocks, as commands carry it. */
export const blocksFrom = (ids: ReadonlyArray<string> = []): ReadonlySet<string> =>
  ids.length === 0 ? noBlocks : new Set(ids)

const hasBlocked = ({ blocks }: Reachable, { id }: Reachable): boolean => blocks?.has(id) === true

/** Whether `from` reaches `to`. Content passes in neither direction of a block. */
export const reach = (from: Reachable, to: Reachable, verb: Verb): boolean => {
  switch (verb) {
    case "send":
      return !hasBlocked(to, from) && !hasBlocked(from, to)
    case "join":
      return !hasBlocked(to, from)
  }
}
