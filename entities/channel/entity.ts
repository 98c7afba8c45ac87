/**
 * Behaviour of the channel entity: activates an actor from its row, runs its timers, and handles the
 * entity's calls. On the gateway's own node, outputs go through {@link LocalChannels}, and the `Watch`
 * stream only shows whether the channel still lives there.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { Entity } from "effect/cluster"
import { ChannelExists, ChannelNotFound, Unavailable } from "#rpc/errors/codes"
import type { ChannelChanges } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import { ChannelRepository } from "#sql/channels"
import { GraceHolds } from "../grace-holds.ts"
import { Lease, makeActivations } from "../lease.ts"
import { listGroup, makeLiveCalls, wake } from "../live-entity.ts"
import { type LocalGroups, makeLocalGroups } from "../local-actors.ts"
import { makeTimer } from "../timer.ts"
import { ChannelActor } from "./actor.ts"
import { type ModerationAct, openChannel } from "./model.ts"
import type { ChannelRuntime } from "./runtime.ts"
import type { ChannelOutput, CreateChannel } from "./messages.ts"
import { Channel } from "./protocol.ts"
import { withChanges, defaultOptions } from "./options.ts"
import { fromRow } from "./snapshot.ts"
import { ChannelWriter } from "./writer.ts"

/** The channels that live on this node. */
export class LocalChannels extends Context.Service<
  LocalChannels,
  LocalGroups<ChannelActor, ChannelOutput>
>()("entities/channel/entity/LocalChannels") {
  static readonly layer = Layer.sync(LocalChannels, () =>
    makeLocalGroups<ChannelActor, ChannelOutput>()
  )
}

/** The parts of the entity id. */
interface Identity {
  readonly id: string
  readonly environmentId: string
  readonly name: string
}

const identityOf = (id: string): Identity => {
  const [environmentId = "", name = ""] = id.split("/")
  return { id, environmentId, name }
}

const wakeState = Effect.fnUntraced(function* ({ environmentId, name }: Identity) {
  const rows = yield* ChannelRepository
  const { epoch, stored } = yield* rows.claim(environmentId, name)
  if (stored === undefined) return { epoch, state: undefined, links: [] }
  const now = yield* Clock.currentTimeMillis
  const { links, state } = yield* Effect.orDie(fromRow({ environmentId, name, ...stored }, now))
  return { epoch, state, links }
})

/** Activates the channel on this node until the scope closes. */
const makeActor = Effect.fnUntraced(function* (identity: Identity) {
  const { environmentId, id, name } = identity
  const clock = yield* Clock.Clock
  const local = yield* LocalChannels
  const writer = yield* ChannelWriter
  const lease = yield* Lease
  const { heldFrom } = yield* GraceHolds
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const { epoch, links, state } = yield* wakeState(identity)
  const wakeAt = yield* makeTimer(() => actor.tick())
  const flushAt = yield* makeTimer(() => actor.watchers.flush())
  const now = () => clock.currentTimeMillisUnsafe()
  const forget = Effect.catchCause(writer.remove(environmentId, name, epoch), (cause) =>
    Effect.logError("Failed to remove the row of a closed channel", cause)
  )
  const runtime: ChannelRuntime = {
    now,
    hasLease: lease.hasLease,
    heldFrom,
    wakeAt,
    flushSoon: () => flushAt(now() + channelLimits.flushMillis),
    changed: () => writer.markDirty(actor),
    closed: () => runFork(forget),
    memberAdded: (playerId) => local.byPlayer.add(playerId, actor),
    memberRemoved: (playerId) => local.byPlayer.delete(playerId, actor)
  }
  const actor: ChannelActor = new ChannelActor({ id, name, epoch, state, runtime, links })
  /** Has the row written, if it should have absent members, or has them no more. */
  const writeAbsent = (): void => {
    if (actor.state !== undefined && actor.state.graceAt !== null) writer.markDirty(actor)
  }
  const { activation } = actor
  yield* listGroup(local, actor, {
    begin: () => {
      writeAbsent()
      actor.reschedule()
    },
    retire: () => {
      activation.retired = true
      if (!activation.fenced) writeAbsent()
    },
    end: Effect.map(writer.flush, () => activation.fence())
  })
  return actor
})

/** Creates a channel for a player. It writes the row before the reply. */
const create = Effect.fnUntraced(function* (
  { environmentId, name }: Identity,
  actor: ChannelActor,
  requested: CreateChannel
) {
  if (actor.state !== undefined) return yield* new ChannelExists()
  const writer = yield* ChannelWriter
  const now = yield* Clock.currentTimeMillis
  const options = { ...defaultOptions(environmentId, name, now), ...requested, managed: false }
  const state = openChannel(options, now)
  // After an error the row may exist: the next activation reads it.
  const inserted = yield* Effect.onError(writer.insert(state, actor.epoch), () =>
    Effect.sync(() => actor.activation.fence())
  )
  if (!inserted || actor.state !== undefined) return yield* new ChannelExists()
  actor.open(state)
})

/** Creates or changes a managed channel. It writes the row before the reply. */
const put = Effect.fnUntraced(function* (
  { environmentId, name }: Identity,
  actor: ChannelActor,
  changes: ChannelChanges
) {
  const writer = yield* ChannelWriter
  if (actor.state === undefined) {
    const now = yield* Clock.currentTimeMillis
    const created = openChannel(defaultOptions(environmentId, name, now), now)
    actor.open(yield* Effect.fromResult(withChanges(created, changes)))
  } else {
    yield* Effect.catchTag(Effect.fromResult(actor.put(changes)), "channel_not_found", () =>
      Effect.fail(new Unavailable())
    )
  }
  yield* writer.save(actor)
  return actor.report() ?? (yield* new Unavailable())
})

const moderate = Effect.fnUntraced(function* (actor: ChannelActor, act: ModerationAct) {
  const writer = yield* ChannelWriter
  const before = actor.state?.lists
  yield* Effect.fromResult(actor.moderate(act))
  if (actor.state?.lists !== before) yield* writer.save(actor)
})

const remove = Effect.fnUntraced(function* (
  { environmentId, name }: Identity,
  actor: ChannelActor
) {
  if (actor.state === undefined) return yield* new ChannelNotFound()
  const writer = yield* ChannelWriter
  yield* writer.remove(environmentId, name, actor.epoch)
  actor.close("deleted")
})

const report = (actor: ChannelActor) => {
  const current = actor.report()
  return current === undefined ? Effect.fail(new ChannelNotFound()) : Effect.succeed(current)
}

/** The channel's behaviour. */
export const ChannelLive = Channel.toLayer(
  Effect.gen(function* () {
    const { entityId } = yield* Entity.CurrentAddress
    const identity = identityOf(entityId)
    const active = yield* makeActivations(makeActor(identity))
    const { Input, watch } = yield* makeLiveCalls(entityId, active, yield* LocalChannels)
    return Channel.of({
      Create: ({ payload }) =>
        Effect.flatMap(active, (actor) => create(identity, actor, payload.create)),
      Put: ({ payload }) =>
        Effect.flatMap(active, (actor) => put(identity, actor, payload.changes)),
      Get: () => Effect.flatMap(active, report),
      Delete: () => Effect.flatMap(active, (actor) => remove(identity, actor)),
      Wake: () => Effect.map(active, wake),
      Publish: ({ payload }) =>
        Effect.flatMap(active, (actor) => Effect.fromResult(actor.publish(payload))),
      Moderate: ({ payload }) => Effect.flatMap(active, (actor) => moderate(actor, payload)),
      Shut: () => Effect.map(active, (actor) => actor.close("feature_disabled")),
      Input,
      Watch: ({ payload }) => {
        const { epoch, link, listeners, node, players } = payload
        return watch(payload, {
          errorOf: ({ state }) => (state === undefined ? new ChannelNotFound() : undefined),
          attach: (actor, watcher) => actor.attach(node, watcher, epoch, players, listeners, link),
          detach: ({ activation }, watcher) => activation.detach(node, watcher)
        })
      }
    })
  }),
  { concurrency: "unbounded", mailboxCapacity: 100_000 }
)
