/**
 * JSON Schema of `svc.config.json` for editors; reference it in the document's `$schema`. It omits the
 * rules between fields and the checks of origins, URLs and time zones, which a push performs.
 */
import { JsonSchema, Schema } from "effect"
import { EnvironmentConfig } from "./document.ts"

/** Builds the JSON Schema in draft 07, the draft with the widest editor support. */
export const configJsonSchema = (): JsonSchema.JsonSchema => {
  const { schema } = JsonSchema.toDocumentDraft07(
    Schema.toJsonSchemaDocument(EnvironmentConfig, { onExcessProperty: "error" })
  )
  return { $schema: JsonSchema.META_SCHEMA_URI_DRAFT_07, title: "svc.config.json", ...schema }
}

/** Returns the content of `rpc/config.schema.json`. */
export const configJsonSchemaText = (): string => `${JSON.stringify(configJsonSchema(), null, 2)}\n`
