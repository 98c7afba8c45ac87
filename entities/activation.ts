/**
 * Activation of an entity that nodes watch: its epoch, its fence and its watchers. That of an entity with
 * members and a row also has the commands that it has executed, and the times of its writes. The actor of
 * the entity holds it beside the state.
 */
import { ExecutedCommands, type StoredLink } from "./executed-commands.ts"
import type { MemberReports } from "./local-actors.ts"
import { refreshMillis } from "./overdue.ts"
import { type Watcher, Watchers } from "./watchers.ts"

/** Dependencies of an actor with members and a row on its process. */
export interface ActivationRuntime extends MemberReports {
  readonly now: () => number
  /** Whether this process surely still owns the entity's shard. */
  readonly hasLease: () => boolean
  /** Since when players of the environment wait for admission, which holds graces; null: nobody waits. */
  readonly heldFrom: (environmentId: string) => number | null
  /** Calls `tick` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** Reports a change of what is stored. */
  readonly changed: () => void
}

export class Activation<Output> {
  readonly epoch: number
  readonly watchers = new Watchers<Output>()
  /** Whether a newer activation owns the entity. A fenced one ignores commands and sends nothing. */
  fenced = false
  readonly #hasLease: () => boolean

  constructor(epoch: number, hasLease: () => boolean) {
    this.epoch = epoch
    this.#hasLease = hasLease
  }

  /** Whether this activation still acts for the entity. One without a lease is fenced for good. */
  get isActive(): boolean {
    if (!this.fenced && !this.#hasLease()) this.fence()
    return !this.fenced
  }

  /** Starts an attachment of a node; false for a repeated one. An older release does not number it. */
  admit(node: string, watch: number | undefined): boolean {
    return watch === undefined || this.watchers.admit(node, watch)
  }

  /** Whether the node may send commands through this attachment; those of another come too late. */
  accepts(node: string, watch: number | undefined): boolean {
    if (this.fenced) return false
    return watch === undefined ? this.watchers.has(node) : this.watchers.isAttached(node, watch)
  }

  /** Fences this activation: a newer one owns the entity. */
  fence(): void {
    this.fenced = true
    this.watchers.end()
  }
}

/** Activation of an entity with members and a row. */
export class StoredActivation<Output> extends Activation<Output> {
  /** Commands that the state contains, written with it. */
  readonly executed: ExecutedCommands
  /** Whether the activation ends: it ignores commands and sends nothing. Its state can still be written. */
  retired = false
  /** Time of the last request to write the state. */
  changedAt: number
  readonly #runtime: ActivationRuntime
  readonly #onFenced: () => void

  constructor(
    epoch: number,
    runtime: ActivationRuntime,
    links: ReadonlyArray<StoredLink> = [],
    onFenced: () => void = () => undefined
  ) {
    super(epoch, runtime.hasLease)
    this.#runtime = runtime
    this.#onFenced = onFenced
    this.changedAt = runtime.now()
    this.executed = new ExecutedCommands(links, this.changedAt)
  }

  override get isActive(): boolean {
    return super.isActive && !this.retired
  }

  override fence(): void {
    super.fence()
    this.#onFenced()
  }

  /** Time at which the state is written again even without a change. */
  get refreshAt(): number {
    return this.changedAt + refreshMillis
  }

  /** Requests that the state is written. */
  changed(): void {
    this.changedAt = this.#runtime.now()
    this.#runtime.changed()
  }

  /** Calls `tick` at this time, or earlier for a node whose absence is noticed then. */
  wakeAt(millis: number): void {
    if (!this.fenced) this.#runtime.wakeAt(Math.min(millis, this.watchers.absenceDeadline))
  }

  /** Expects a node to watch: the next `tick` after its absence notices if it does not. */
  expect(node: string, now: number): void {
    if (this.watchers.expect(node, now)) this.wakeAt(this.watchers.absenceDeadline)
  }

  /** Prepares the attachment of a node, which must not receive events before its snapshot. */
  prepare(node: string, link: number | undefined): void {
    this.executed.attach(node, link)
    this.watchers.remove(node)
    this.watchers.cancelExpectation(node)
  }

  /** Detaches a node whose stream broke; its members may come back until the absence is noticed. */
  detach(node: string, watcher: Watcher<Output>): void {
    if (!this.watchers.remove(node, watcher)) return
    const now = this.#runtime.now()
    this.executed.detach(node, now)
    this.expect(node, now)
  }
}
