/**
 * What a push of a file would change, as a unified diff. The order of names means nothing in a config:
 * the one in force is put in the order of the file first, so that only what differs shows.
 */
import { type Schema, TextDiff } from "effect"
import { isJsonObject } from "./document.ts"

/** A value with the names of its objects in the order that they have in a model of it. */
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

/** The text of a config as it stands in a file. */
export const configText = (document: Schema.Json): string =>
  `${JSON.stringify(document, null, 2)}\n`

/** The lines of a unified diff from one config to another; none when they say the same. */
export const diffLines = (
  before: { readonly name: string; readonly document: Schema.Json },
  after: { readonly name: string; readonly document: Schema.Json }
): ReadonlyArray<string> => {
  const arranged = arrange(before.document, after.document)
  const edits = TextDiff.lines(configText(arranged), configText(after.document))
  const text = TextDiff.unified(edits, { fromFile: before.name, toFile: after.name })
  return text === "" ? [] : text.trimEnd().split("\n")
}
