/**
 * Registry of the entities that live on this node. A gateway reaches an entity of its own node here,
 * without RPC, in the same order as over the network. The entity client reaches all others.
 */
import { Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { newId, type NodeId } from "#rpc/ids"
import { Multimap } from "./multimap.ts"

/** Connects a sender to the receiver that registers for its values; drops values sent before. */
export class Sink<Values extends ReadonlyArray<unknown>> {
  #receiver: ((...values: Values) => void) | undefined

  /** Sets the receiver; it replaces an earlier one. */
  register(receiver: (...values: Values) => void): void {
    this.#receiver = receiver
  }

  send(...values: Values): void {
    this.#receiver?.(...values)
  }
}

/** Receives the outputs of one step of an entity for this node; `epoch` is the entity's activation. */
export interface OutputReceiver<Output> {
  receive(epoch: number, outputs: ReadonlyArray<Output>): void
}

export interface LocalActors<Actor, Output> {
  /** Actors by entity id. */
  readonly actors: Map<string, Actor>
  /** Links of this node's hub, by entity id; an entity drops outputs without a receiver. */
  readonly receivers: Map<string, OutputReceiver<Output>>
}

export const makeLocalActors = <Actor, Output>(
  actors: Map<string, Actor> = new Map<string, Actor>()
): LocalActors<Actor, Output> => ({ actors, receivers: new Map() })

/** Registry of entities that have players as members. */
export interface LocalGroups<Actor extends object, Output> extends LocalActors<Actor, Output> {
  /** Actors by the id of a member. */
  readonly byPlayer: Multimap<string, Actor>
}

export const makeLocalGroups = <Actor extends object, Output>(
  actors?: Map<string, Actor>
): LocalGroups<Actor, Output> => ({ ...makeLocalActors(actors), byPlayer: new Multimap() })

/** Callbacks by which an entity reports its members, so that the registry finds it by them. */
export interface MemberReports {
  readonly memberAdded: (playerId: string) => void
  readonly memberRemoved: (playerId: string) => void
}

/** The identity of this process, new at each start. */
export class ThisNode extends Context.Service<ThisNode, { readonly id: NodeId }>()(
  "entities/local-actors/ThisNode"
) {
  static readonly layer: Layer.Layer<ThisNode, never, SecureRandom.SecureRandom> = Layer.effect(
    ThisNode,
    Effect.map(newId.node, (id) => ThisNode.of({ id }))
  )
}
