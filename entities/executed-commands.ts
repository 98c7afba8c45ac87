/**
 * Executed commands of each link, so that an entity executes a repeated command only once. A link
 * sends its commands in the order of their numbers. After each attachment it first repeats those
 * without a reply. So one number per link, the last executed one, covers all commands before it.
 *
 * The entity stores these numbers with the state that they belong to. A state that has lost
 * commands has lost their numbers too, so the entity executes them when the link repeats them.
 */
import { Schema } from "effect"
import { toWire, Unavailable, WireError } from "#rpc/errors/codes"

export const StoredLink = Schema.Struct({
  node: Schema.String,
  /** Number of the link on its node. */
  link: Schema.Int,
  /** The last executed command. */
  last: Schema.Int,
  /** The last refused command whose refusal is forgotten; 0 for none. */
  forgotten: Schema.Int,
  /** Refusals by the number of the command, oldest first. */
  refusals: Schema.Array(Schema.Tuple([Schema.Int, WireError]))
})
export type StoredLink = typeof StoredLink.Type

/** Refusals that may still be without receipt. Success needs no entry. */
const refusalsMax = 64

/**
 * Time for which an entity remembers an absent link, in milliseconds. The link fails its commands
 * after 15 seconds.
 */
const absentMillis = 60_000

/** The executed commands of one link. */
export class LinkCommands {
  readonly link: number
  /** Time since which the link is not attached, Unix milliseconds; undefined while it is. */
  absentSince: number | undefined
  /** The last command that an earlier activation executed. */
  readonly #restored: number
  #last: number
  #forgotten: number
  readonly #refusals: Map<number, WireError>

  constructor({ forgotten, last, link, refusals }: Omit<StoredLink, "node">) {
    this.link = link
    this.#restored = last
    this.#last = last
    this.#forgotten = forgotten
    this.#refusals = new Map(refusals)
  }

  /** Counts a command as executed; false for a repeated one. */
  accept(seq: number): boolean {
    if (seq === 0) return true
    const number = Math.abs(seq)
    if (number <= this.#last) return false
    this.#last = number
    return true
  }

  /** Whether this activation, not an earlier one, has executed the command. */
  wasExecutedHere(seq: number): boolean {
    const number = Math.abs(seq)
    return number > this.#restored && number <= this.#last
  }

  /** Stores the error of a refused command that wants a reply. */
  refused(seq: number, error: WireError): void {
    if (seq <= 0) return
    this.#refusals.set(seq, error)
    if (this.#refusals.size <= refusalsMax) return
    const [oldest = 0] = this.#refusals.keys()
    this.#refusals.delete(oldest)
    this.#forgotten = oldest
  }

  /** The error of a command that was executed before; `unavailable` if its outcome is forgotten. */
  errorOf(seq: number): WireError | undefined {
    const error = this.#refusals.get(seq)
    return error ?? (seq > this.#forgotten ? undefined : toWire(new Unavailable()))
  }

  stored(node: string): StoredLink {
    const refusals = Array.from(this.#refusals)
    return { node, link: this.link, last: this.#last, forgotten: this.#forgotten, refusals }
  }
}

/** The executed commands of all links. Forgets a link that has been absent for a minute. */
export class ExecutedCommands {
  readonly #links = new Map<string, LinkCommands>()

  constructor(stored: ReadonlyArray<StoredLink>, now: number) {
    for (const { node, ...link } of stored) {
      const commands = new LinkCommands(link)
      commands.absentSince = now
      this.#links.set(node, commands)
    }
  }

  /** The commands of the node's link; undefined if the link does not number its commands. */
  of(node: string): LinkCommands | undefined {
    return this.#links.get(node)
  }

  /** Attaches a node. A new link of the node begins its numbers again. */
  attach(node: string, link: number | undefined): void {
    if (link === undefined) {
      this.#links.delete(node)
      return
    }
    const known = this.#links.get(node)
    if (known?.link === link) known.absentSince = undefined
    else {
      const commands = new LinkCommands({ link, last: 0, forgotten: 0, refusals: [] })
      this.#links.set(node, commands)
    }
  }

  /** Records the end of a node's attachment; its link may come back. */
  detach(node: string, now: number): void {
    const commands = this.#links.get(node)
    if (commands !== undefined) commands.absentSince = now
  }

  /** Removes the links of nodes that have not watched for a minute: they will not come back. */
  expire(now: number, watchers: { readonly has: (node: string) => boolean }): void {
    for (const [node, commands] of this.#links) {
      if (watchers.has(node)) continue
      commands.absentSince ??= now
      if (now >= commands.absentSince + absentMillis) this.#links.delete(node)
    }
  }

  /** The links that have executed commands, in their stored form. */
  stored(): ReadonlyArray<StoredLink> {
    return Array.from(this.#links, ([node, commands]) => commands.stored(node)).filter(
      ({ last }) => last > 0
    )
  }
}
