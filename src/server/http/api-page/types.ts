/** Schemas of the OpenAPI document as TypeScript-like text, with links between named ones. */
import { itemsOf, type Json, isJson, member, membersOf, refName, textOf } from "#rpc/openapi/json"
import { escapeText, inline } from "./markup.ts"

/** The id by which a link finds a schema. */
export const schemaAnchor = (name: string): string => `schema-${name}`

const link = (name: string): string => `<a href="#${schemaAnchor(name)}">${name}</a>`

const bounds: ReadonlyArray<readonly [string, string]> = [
  ["minLength", "at least %s characters"],
  ["maxLength", "at most %s characters"],
  ["minimum", "at least %s"],
  ["maximum", "at most %s"],
  ["exclusiveMinimum", "above %s"],
  ["minItems", "at least %s"],
  ["maxItems", "at most %s"],
  ["minProperties", "at least %s keys"],
  ["maxProperties", "at most %s keys"],
  ["pattern", "%s"]
]

const isBound = (value: unknown): boolean =>
  typeof value !== "number" || Math.abs(value) < Number.MAX_SAFE_INTEGER

/** Returns the remarks of a schema beside its type: description and bounds. */
const remarks = (schema: Json): string => {
  const merged: Json = Object.assign({}, schema, ...itemsOf(schema["allOf"]))
  const limits = bounds.flatMap(([key, text]) =>
    merged[key] === undefined || !isBound(merged[key])
      ? []
      : [text.replace("%s", () => String(merged[key]))]
  )
  const all = [textOf(schema["description"]).replace(/\.$/, ""), ...limits].filter(
    (text) => text !== ""
  )
  return all.length === 0 ? "" : `  <i>// ${inline(all.join(", "))}</i>`
}

const fieldLines = (schema: Json, indent: string): string => {
  const required = new Set(itemsOf(schema["required"]))
  const lines = membersOf(schema["properties"]).map(([name, field]) => {
    const key = /^\w+$/.test(name) ? name : JSON.stringify(name)
    const mark = required.has(name) ? "" : "?"
    const remark = isJson(field) ? remarks(field) : ""
    return `${indent}  ${escapeText(key)}${mark}: ${typeText(field, `${indent}  `)}${remark}\n`
  })
  const values = schema["additionalProperties"]
  const rest = isJson(values) ? [`${indent}  [key]: ${typeText(values, `${indent}  `)}\n`] : []
  return [...lines, ...rest].join("")
}

/** The type of a schema. */
export const typeText = (schema: unknown, indent = ""): string => {
  const name = refName(schema)
  if (name !== undefined) return link(name)
  if (!isJson(schema)) return "any"
  const choices = itemsOf(schema["enum"])
  if (choices.length > 0) {
    return choices.map((choice) => escapeText(JSON.stringify(choice))).join(" | ")
  }
  const either = itemsOf(schema["anyOf"] ?? schema["oneOf"])
  if (either.length > 0) return either.map((one) => typeText(one, indent)).join(" | ")
  if (schema["type"] === "array") return `${typeText(schema["items"], indent)}[]`
  if (schema["type"] !== "object") return textOf(schema["type"]) || "any"
  const fields = fieldLines(schema, indent)
  return fields === "" ? "{}" : `{\n${fields}${indent}}`
}

/** A named schema: its description, its type and, but for errors, an example. */
export const schemaBlock = (name: string, schema: unknown): string => {
  const example = itemsOf(member(schema, "examples"))[0]
  const shown =
    isJson(example) || Array.isArray(example) ? JSON.stringify(example) : String(example)
  return (
    `<details id="${schemaAnchor(name)}"><summary>${name}</summary>` +
    `<p>${inline(textOf(member(schema, "description")))}</p>` +
    `<pre>${typeText(schema)}</pre>` +
    (name.endsWith("Error") ? "" : `<p>Example</p><pre class="wrap">${escapeText(shown)}</pre>`) +
    "</details>"
  )
}
