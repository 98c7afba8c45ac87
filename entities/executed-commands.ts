/**
 * Which commands of each link an entity has executed, so that it executes a repeated one only once. A
 * link sends its commands in the order of their numbers, and after each attachment first those again
 * that have no reply. So one number per link, the last executed one, covers all commands before it.
 *
 * The entity stores these numbers with the state that they belong to. A state that has lost commands
 * then has lost their numbers too, and executes them when they are repeated.
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

/** How long an absent link is remembered. It fails its commands after 15 seconds. */
const absentMillis = 60_000

/** The executed commands of one link. */
export class LinkCommands {
  readonly link: number
  /** Since when the link is not attached, Unix milliseconds. */
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

  /** Keeps the error of a refused command that wants a reply. */
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

  /** A node attaches. A new link of the node begins its numbers again. */
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

  /** The attachment of a node has ended; its link may come back. */
  detach(node: string, now: number): void {
    const commands = this.#links.get(node)
    if (commands !== undefined) commands.absentSince = now
  }

  /** Forgets the links that will not come back: their nodes have not watched for a minute. */
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
