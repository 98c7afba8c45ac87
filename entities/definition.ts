/**
 * Definition of an entity: its layers, and what the service reads of its actors on each node. The registry
 * lists all definitions, so that nothing else needs to know every entity.
 */
import { Effect, type Layer } from "effect"
import type { FeatureName } from "#rpc/config-document/features"
import type { UsageComponent } from "#rpc/money"
import type { NodeDocument } from "#sql/live/nodes"
import type { LiveReport } from "#sql/live/reports"
import type { LocalGroups } from "./local-actors.ts"
import type { SnapshotStats } from "./write-behind.ts"

type LiveLists = Required<Omit<LiveReport["document"], "truncated">>

/** An entry of a live report, under the list that it belongs to. */
export type LiveEntry = { readonly [List in keyof LiveLists]?: LiveLists[List][number] }

/** A number that the service shows of a node. */
export interface Count<Of> {
  readonly metric?: readonly [name: string, description: string]
  /** Field of the node's report. */
  readonly field?: keyof NodeDocument & ("rooms" | "players" | "channels" | "calls")
  readonly of: Of
}

/** An actor with players as members. */
export interface Group {
  readonly environmentId: string | undefined
  tick(): void
  removePlayer(playerId: string, reason: "banned" | "deleted"): void
  renamePlayer(playerId: string, displayName: string): void
  setBlocks(playerId: string, blocks: ReadonlyArray<string>): void
  close(reason: "feature_disabled"): void
}

export type Groups = Pick<LocalGroups<Group, never>, "actors" | "byPlayer">

/** Writer of the actors' snapshots. */
export interface Writer {
  readonly counts: SnapshotStats
  readonly waiting: () => number
}

interface Definition<Id, Actor, R, W> {
  /** Name in the labels of metrics. */
  readonly word: string
  /** Registry of the actors of this node. */
  readonly registry: Effect.Effect<{ readonly actors: ReadonlyMap<Id, Actor> }, never, R>
  /** What metrics and the node's report show: the sum over all actors. */
  readonly counts: ReadonlyArray<Count<(actor: Actor) => number>>
  readonly environmentOf?: (actor: Actor, id: Id) => string | undefined
  readonly live?: (actor: Actor, id: Id) => LiveEntry
  /** Units of a component that an actor uses in each second. */
  readonly usage?: { readonly component: UsageComponent; readonly of: (actor: Actor) => number }
  readonly groups?: Effect.Effect<Groups, never, R>
  /** Feature without which the groups of this node close at once. */
  readonly closesWithout?: FeatureName
  readonly writer?: Effect.Effect<Writer, never, W>
}

const onNode = <Id, Actor, R, W>(definition: Definition<Id, Actor, R, W>) =>
  Effect.gen(function* () {
    const { closesWithout, counts, environmentOf, live, usage, word } = definition
    const { actors } = yield* definition.registry
    /** The actors that belong to an environment. */
    const owned = function* () {
      for (const [id, actor] of actors) {
        const environmentId = environmentOf?.(actor, id)
        if (environmentId !== undefined) yield { actor, environmentId, id }
      }
    }
    const sum = (of: (actor: Actor) => number): number => {
      let total = 0
      for (const actor of actors.values()) total += of(actor)
      return total
    }
    return {
      word,
      counts: counts.map((count) => ({ ...count, of: () => sum(count.of) })),
      *live() {
        if (live === undefined) return
        for (const { actor, environmentId, id } of owned()) {
          yield { environmentId, entry: live(actor, id) }
        }
      },
      *usage() {
        if (usage === undefined) return
        for (const { actor, environmentId } of owned()) {
          yield { environmentId, component: usage.component, perSecond: usage.of(actor) }
        }
      },
      groups: definition.groups && (yield* definition.groups),
      closesWithout,
      writer: definition.writer && (yield* definition.writer)
    }
  })

/**
 * Declares an entity. Its layer `local` holds what lives on a node, below the cluster; `behaviour` runs it in
 * the cluster.
 */
export const entity = <
  Id,
  Actor,
  R,
  Local extends Layer.Any,
  Behaviour extends Layer.Any,
  W = never
>(
  definition: Definition<Id, Actor, R, W> & { readonly local: Local; readonly behaviour: Behaviour }
) => ({
  local: definition.local,
  behaviour: definition.behaviour,
  onNode: onNode(definition)
})
