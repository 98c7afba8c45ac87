/**
 * The JSON Schema of `svc.config.json`, for editors: name it in the document's `$schema`. It says
 * less than the schema it comes from: rules between fields, origins, URLs and time zones are checked
 * on push.
 */
import { JsonSchema, Schema } from "effect"
import { EnvironmentConfig } from "./document.ts"

/** The JSON Schema of the document, in the draft that editors know best. */
export const configJsonSchema = (): JsonSchema.JsonSchema => {
  const { schema } = JsonSchema.toDocumentDraft07(
    Schema.toJsonSchemaDocument(EnvironmentConfig, { onExcessProperty: "error" })
  )
  return { $schema: JsonSchema.META_SCHEMA_URI_DRAFT_07, title: "svc.config.json", ...schema }
}

/** The text of `rpc/config.schema.json`. */
export const configJsonSchemaText = (): string => `${JSON.stringify(configJsonSchema(), null, 2)}\n`
