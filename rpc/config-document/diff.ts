/**
 * Unified diff of two configs. The order of names has no meaning in a config, so the current config is
 * first arranged in the order of the file.
 */
import { type Schema, TextDiff } from "effect"

const isJsonObject = (value: Schema.Json | undefined): value is Schema.JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Orders the names of a value's objects as in a model of it. */
const arrange = (value: Schema.Json, model: Schema.Json | undefined): Schema.Json => {
  if (Array.isArray(value)) {
    const items: ReadonlyArray<Schema.Json> = Array.isArray(model) ? model : []
    return value.map((item, index) => arrange(item, items[index]))
  }
  if (!isJsonObject(value)) return value
  const like = isJsonObject(model) ? model : {}
  const names = new Set([...Object.keys(like), ...Object.keys(value)])
  return Object.fromEntries(
    Array.from(names).flatMap((name) => {
      const member = Object.hasOwn(value, name) ? value[name] : undefined
      return member === undefined ? [] : [[name, arrange(member, like[name])]]
    })
  )
}

/** The file form of a config. */
export const configText = (document: Schema.Json): string =>
  `${JSON.stringify(document, null, 2)}\n`

/** Lines of a unified diff between two configs; empty when they are equal. */
export const diffLines = (
  before: { readonly name: string; readonly document: Schema.Json },
  after: { readonly name: string; readonly document: Schema.Json }
): ReadonlyArray<string> => {
  const arranged = arrange(before.document, after.document)
  const edits = TextDiff.lines(configText(arranged), configText(after.document))
  const text = TextDiff.unified(edits, { fromFile: before.name, toFile: after.name })
  return text === "" ? [] : text.trimEnd().split("\n")
}
