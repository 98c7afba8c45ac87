/**
 * Decides which runners are evicted. Each runner watches its links to all others and publishes in
 * Postgres whom it does not reach. All read the same reports and draw the same verdict from them.
 *
 * - A group of runners that reach each other stays if it holds more than half of all; the others are
 *   evicted. Without such a group nobody is: each keeps its shard locks, and calls between the groups
 *   fail until they reach each other again.
 * - A runner that does not reply is gone at once if Postgres has lost it too.
 */
import { type Cause, Clock, Context, Effect, Layer, Option, Schedule } from "effect"
import { type RunnerAddress, ShardingConfig } from "effect/cluster"
import { type RunnerReport, RunnerReports } from "#sql/runners"
import { Invalidation } from "#server/platform/invalidation"
import { monotonicMillis } from "#entities/monotonic"
import { formatAddress, parseAddress } from "./runner-address.ts"
import { PeerRunners } from "./runner-links.ts"

const checkMillis = 100
/** Checks in a row without a reply until a runner is reported, and with one until the report ends. */
const missedUntilReport = 8
const repliesUntilWithdrawal = 30
/** Checks per exchange of reports; a runner that has just lost another exchanges at every check. */
const checksPerExchange = 5
const exchangeMillis = 1000
/** Time for which a verdict waits until all runners had time to report the same partition. */
const holdMillis = 1500

type OwnReport = Pick<RunnerReport, "address" | "unreachable">

/**
 * The runners that the verdict evicts. Two runners reach each other unless one of them reports the
 * other; a group reaches each other directly or through its members.
 */
export const evictedRunners = (reports: ReadonlyArray<OwnReport>): ReadonlySet<string> => {
  const unreachable = new Map(reports.map((report) => [report.address, report.unreachable]))
  const isCut = (a: string, b: string): boolean =>
    unreachable.get(a)?.includes(b) === true || unreachable.get(b)?.includes(a) === true
  const rest = new Set(unreachable.keys())
  for (const first of rest) {
    rest.delete(first)
    const group = [first]
    for (const member of group) {
      for (const other of rest) {
        if (isCut(member, other)) continue
        rest.delete(other)
        group.push(other)
      }
    }
    if (group.length * 2 <= unreachable.size) continue
    return new Set(Array.from(unreachable.keys()).filter((address) => !group.includes(address)))
  }
  return new Set()
}

export interface MembershipView {
  readonly isEvicted: (address: RunnerAddress.RunnerAddress) => boolean
  readonly isSelfEvicted: () => boolean
}

/** Membership view. The default is for a single node, which evicts nobody. */
export const Membership = Context.Reference<MembershipView>(
  "server/cluster/membership/Membership",
  { defaultValue: () => ({ isEvicted: () => false, isSelfEvicted: () => false }) }
)

/** Observations of this runner about another one. */
class Contact {
  /** Checks in a row with the same outcome: with a reply above zero, without one below. */
  #streak = 0
  isReported = false

  check(replies: boolean): void {
    this.#streak = replies ? Math.max(0, this.#streak) + 1 : Math.min(0, this.#streak) - 1
    if (this.#streak === -missedUntilReport) this.isReported = true
    if (this.#streak === repliesUntilWithdrawal) this.isReported = false
  }

  /** Whether the runner did not answer the last check. */
  get isSuspect(): boolean {
    return this.#streak < 0
  }

  /** Whether the runner has stopped answering within the last second. */
  get isNew(): boolean {
    return this.isSuspect && this.#streak >= -missedUntilReport
  }
}

/** The state of one runner's membership: its contacts, and what the reports say. */
class View {
  readonly #now: () => number
  contacts: ReadonlyMap<string, Contact> = new Map()
  #gone: ReadonlySet<string> = new Set()
  /** Start of the verdict that evicts a runner, by address. */
  #evictedSince: ReadonlyMap<string, number> = new Map()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Addresses of the contacts that match. */
  filter(matches: (contact: Contact) => boolean): ReadonlyArray<string> {
    return Array.from(this.contacts).flatMap(([to, contact]) => (matches(contact) ? [to] : []))
  }

  /** Applies the reports of this runner and the others. Returns the runners gone since the last call. */
  update(own: OwnReport, others: ReadonlyArray<RunnerReport>): ReadonlyArray<string> {
    this.contacts = new Map(
      others.map(({ address }) => [address, this.contacts.get(address) ?? new Contact()])
    )
    const present = others.filter(({ isPresent }) => isPresent)
    const gone = others.flatMap(({ address, isPresent }) =>
      !isPresent && this.contacts.get(address)?.isSuspect === true ? [address] : []
    )
    const newlyGone = gone.filter((address) => !this.#gone.has(address))
    this.#gone = new Set(gone)
    const verdict = evictedRunners([...present, own])
    this.#evictedSince = new Map(
      Array.from(verdict, (address) => [address, this.#evictedSince.get(address) ?? this.#now()])
    )
    return newlyGone
  }

  isEvicted(address: string): boolean {
    const since = this.#evictedSince.get(address) ?? Infinity
    return this.#gone.has(address) || this.#now() - since >= holdMillis
  }
}

/** Watches the others and exchanges reports for as long as the runner runs. */
export const MembershipLive = Layer.effect(
  Membership,
  Effect.gen(function* () {
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    const self = Option.match(runnerAddress, { onNone: () => "", onSome: formatAddress })
    const invalidation = yield* Invalidation
    const peers = yield* PeerRunners
    const reports = yield* RunnerReports
    const view = new View(monotonicMillis(yield* Clock.Clock))
    let checks = 0

    const exchange = Effect.gen(function* () {
      const unreachable = view.filter(({ isReported }) => isReported)
      const suspects = view.filter(({ isSuspect }) => isSuspect)
      const others = yield* reports.exchange({ self, unreachable, suspects })
      const gone = view.update({ address: self, unreachable }, others)
      if (gone.length === 0) return
      yield* Effect.logInfo("Runners are gone; their shards move", gone.join(", "))
      const isFirst = others.every(({ address, isPresent }) => !isPresent || self < address)
      if (isFirst) yield* invalidation.publish({ kind: "runners", id: "" })
    }).pipe(
      Effect.timeout(exchangeMillis),
      Effect.catchCause((cause: Cause.Cause<unknown>) =>
        Effect.logDebug("Failed to exchange reports with the other runners", cause)
      )
    )

    const check = Effect.suspend(() => {
      for (const [address, contact] of view.contacts) {
        contact.check(peers.isAlive(parseAddress(address)))
      }
      checks += 1
      const isDue = checks % checksPerExchange === 0
      return isDue || view.filter(({ isNew }) => isNew).length > 0 ? exchange : Effect.void
    })

    const remove = Effect.ignoreCause(Effect.timeout(reports.remove(self), exchangeMillis))
    yield* Effect.acquireRelease(remove, () => remove)
    yield* exchange
    yield* Effect.forkScoped(Effect.repeat(check, Schedule.spaced(checkMillis)))
    return {
      isEvicted: (address) => view.isEvicted(formatAddress(address)),
      isSelfEvicted: () => view.isEvicted(self)
    }
  })
)
