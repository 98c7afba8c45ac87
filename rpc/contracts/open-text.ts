/** Whether players can say anything through a schema: the text of those who may not chat is withheld. */
import { type DataSchema, type DataSchemas, resolved, typesOf, valuesOf } from "./schema.ts"

/** Whether a schema lets through a text that a player chooses freely. */
export const isOpenText = (schema: DataSchema, schemas: DataSchemas): boolean => {
  const known = new Map<DataSchema, boolean>()
  const isOpen = (part: DataSchema): boolean => {
    const content = resolved(part, schemas)
    const found = known.get(content)
    if (found !== undefined) return found
    known.set(content, false)
    const open = isOpenContent(content)
    known.set(content, open)
    return open
  }
  const isOpenContent = (content: DataSchema): boolean => {
    const { additionalProperties, items, oneOf, properties = {} } = content
    if (oneOf !== undefined) return oneOf.some(isOpen)
    if (valuesOf(content) !== undefined) return false
    const types = typesOf(content)
    if (types === undefined) return true
    if (types.includes("string") && content.text !== false && content.maxLength !== 0) return true
    if (types.includes("array") && (items === undefined || isOpen(items))) return true
    if (!types.includes("object")) return false
    return additionalProperties !== false || Object.values(properties).some(isOpen)
  }
  return isOpen(schema)
}
