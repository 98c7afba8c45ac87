/**
 * Entity that nodes watch: lists its actor on this node while it lives here, and handles the calls `Input`,
 * `Watch` and `Wake`, which are the same for all of them.
 */
import { Effect, Stream } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import type { Activation } from "./activation.ts"
import { type LocalActors, type LocalGroups, ThisNode } from "./local-actors.ts"
import { makeOutputQueue, type SendByLink } from "./output-queue.ts"
import type { Watcher } from "./watchers.ts"

/** Lists an actor on this node until the scope closes; `end` then ends its life here. */
export const listActor = <Actor, Output>(
  { actors }: LocalActors<Actor, Output>,
  id: string,
  actor: Actor,
  end: Effect.Effect<void>,
  begin = Effect.void
) =>
  Effect.acquireRelease(
    Effect.andThen(
      Effect.sync(() => actors.set(id, actor)),
      begin
    ),
    () =>
      Effect.suspend(() => {
        if (actors.get(id) === actor) actors.delete(id)
        return end
      })
  )

/** An actor with members. */
interface Group {
  readonly id: string
  readonly memberIds: Iterable<string>
}

/** Lists such an actor, also by its members, between the steps that begin and end its life here. */
export const listGroup = <Actor extends Group, Output>(
  local: LocalGroups<Actor, Output>,
  actor: Actor,
  life: {
    readonly begin: () => void
    readonly retire: () => void
    /** Writes the last state, and ends the streams of the nodes. */
    readonly end: Effect.Effect<void>
  }
) => {
  const end = Effect.suspend(() => {
    life.retire()
    for (const playerId of actor.memberIds) local.byPlayer.delete(playerId, actor)
    return life.end
  })
  const begin = Effect.sync(() => {
    for (const playerId of actor.memberIds) local.byPlayer.add(playerId, actor)
    life.begin()
  })
  return listActor(local, actor.id, actor, end, begin)
}

/** The attachment of a node that calls. */
interface Attachment {
  readonly node: string
  readonly watch?: number
}

interface InputCall<Input> extends Attachment {
  /** Number of the call, where an entity is sent the same commands again. */
  readonly call?: number
  readonly inputs: ReadonlyArray<Input>
}

/** An actor that nodes watch, and whose commands they send. */
export interface WatchedActor<Input, Output> {
  readonly activation: Activation<Output>
  readonly submit: (node: string, inputs: ReadonlyArray<Input>) => void
}

/** An activation without state ends, so that the next one reads the row again. */
export const wake = ({
  activation,
  state
}: {
  readonly activation: Pick<Activation<never>, "fence">
  readonly state: unknown
}): void => {
  if (state === undefined) activation.fence()
}

/** Makes the calls of an entity from the effect that returns its active actor. */
export const makeLiveCalls = Effect.fnUntraced(function* <
  Actor extends WatchedActor<Input, Output>,
  Input,
  Output
>(
  id: string,
  active: Effect.Effect<Actor & WatchedActor<Input, Output>, Unavailable>,
  local: LocalActors<Actor, Output>
) {
  const thisNode = yield* ThisNode
  return {
    Input: ({ payload: { call, inputs, node, watch } }: { readonly payload: InputCall<Input> }) =>
      Effect.flatMap(active, (actor) => {
        const { activation } = actor
        if (!activation.accepts(node, watch)) return Effect.fail(new Unavailable())
        const isNew = call === undefined || activation.watchers.acceptCall(node, call)
        if (isNew) actor.submit(node, inputs)
        return Effect.void
      }),
    /** The stream of a node's attachment. */
    watch: <E = never>(
      { node, watch }: Attachment,
      options: {
        /** Returns why the node cannot watch, or undefined. */
        readonly errorOf?: (actor: Actor) => E | undefined
        readonly attach: (actor: Actor, watcher: Watcher<Output>) => void
        readonly detach: (actor: Actor, watcher: Watcher<Output>) => void
        /** The runner link to the node, where there is one. */
        readonly linkOf?: (actor: Actor) => SendByLink<Output> | undefined
      }
    ) =>
      Effect.gen(function* () {
        const actor = yield* active
        const { activation } = actor
        const error = options.errorOf?.(actor)
        if (error !== undefined) return yield* Effect.fail(error)
        if (!activation.admit(node, watch)) return yield* new Unavailable()
        const queue = yield* makeOutputQueue({
          id,
          epoch: activation.epoch,
          local: node === thisNode.id ? local : undefined,
          remote: options.linkOf?.(actor),
          attach: (watcher) => options.attach(actor, watcher),
          detach: (watcher) => options.detach(actor, watcher)
        })
        return Stream.fromQueue(queue)
      }).pipe(Stream.unwrap)
  }
})
