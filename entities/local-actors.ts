/**
 * The live entities of this process, by id. A gateway reaches an entity that lives on its own node
 * through here, without RPC: it hands batches to the actor and takes what the actor tells, in the
 * same order as over the wire. Remote ones go through the entity client.
 */
import { Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { newId, type NodeId } from "#rpc/ids"

/** Takes what an entity tells one node. `epoch` counts the entity's activations. */
export type Deliver<Item> = (id: string, epoch: number, items: ReadonlyArray<Item>) => void

export interface LocalActors<Actor, Item> {
  readonly actors: Map<string, Actor>
  /** Set by the node's gateway; what is told before that has no hearer. */
  deliver: Deliver<Item>
}

export const makeLocalActors = <Actor, Item>(): LocalActors<Actor, Item> => ({
  actors: new Map(),
  deliver: () => undefined
})

/** The identity of this process, new at each start. */
export class ThisNode extends Context.Service<ThisNode, { readonly id: NodeId }>()(
  "entities/local-actors/ThisNode"
) {
  static readonly layer: Layer.Layer<ThisNode, never, SecureRandom.SecureRandom> = Layer.effect(
    ThisNode,
    Effect.map(newId.node, (id) => ThisNode.of({ id }))
  )
}
