/** Schemas that entities share in their calls with the nodes that watch them. */
import { Schema } from "effect"

/** Makes the schemas of commands, distinguished by `t`. */
export const command = <const T extends string, const Fields extends Schema.Struct.Fields>(
  t: T,
  fields: Fields
) => Schema.Struct({ t: Schema.Literal(t), ...fields })

/** Makes the schemas of outputs, distinguished by `kind`. */
export const output = <const K extends string, const Fields extends Schema.Struct.Fields>(
  kind: K,
  fields: Fields
) => Schema.Struct({ kind: Schema.Literal(kind), ...fields })

/** Outputs of one step, with the epoch of the activation that sent them. */
export const batchOf = <Output extends Schema.Top>(outputs: Output) =>
  Schema.Struct({
    epoch: Schema.Int,
    items: Schema.fromJsonString(Schema.Array(outputs))
  })

/** Attachment of a node to an entity that numbers commands. */
export const attachment = {
  node: Schema.String,
  /** Number of the attachment; a repeated number is a duplicate delivery. */
  watch: Schema.Int,
  /** Number of the node's link, whose commands are numbered. Older versions do not send it. */
  link: Schema.optionalKey(Schema.Int),
  /** Epoch of the activation that the node last received from; 0 for none. */
  epoch: Schema.Int
}

/** Payload of a call with the commands of one node. */
export const inputsOf = <Input extends Schema.Top>(input: Input) => ({
  node: Schema.String,
  /** The attachment that sent this; the entity ignores calls of an earlier one. */
  watch: Schema.Int,
  /** Number of the call within its attachment; a repeated number is a duplicate delivery. */
  call: Schema.Int,
  inputs: Schema.fromJsonString(Schema.Array(input))
})
