/**
 * Deployments of Functions: modules, bindings, variables and crons. The schemas bound every list; rules
 * that concern names and several fields are in `issues.ts`.
 */
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { isDay, isStorable, textUpTo, Timestamp } from "../text.ts"
import { functions } from "./limits.ts"

/** Formats in which the runtime loads a module. */
export const ModuleType = Schema.Literals(["esm", "cjs", "text", "data", "json", "wasm"])

/** A module; `content` is base64. */
const Module = Schema.Struct({ name: Schema.String, type: ModuleType, content: Schema.String })

/** A name in `env`; `class` is the exported class of a durable object. */
export const FunctionsBinding = Schema.Struct({
  name: Schema.String,
  type: Schema.Literals(["db", "kv", "files", "queue", "durableObject", "secret"]),
  class: Schema.optionalKey(Schema.String)
}).annotate({
  identifier: "FunctionsBinding",
  description: "A name in `env`. `class` is the exported class of a durable object."
})
export type FunctionsBinding = typeof FunctionsBinding.Type

const Variable = Schema.String.check(
  Schema.makeFilter((text: string) =>
    isStorable(text) ? undefined : "Expected well-formed text without NUL"
  )
)

const dayMessage = "Expected a day like 2026-07-30"

const CompatibilityDate = Schema.String.check(
  Schema.isPattern(/^20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/, {
    message: dayMessage
  }).abort(),
  Schema.makeFilter((text: string) => (isDay(text) ? undefined : dayMessage))
)

/** A new version. `crons` are in UTC. */
export const NewFunctionsDeployment = Schema.Struct({
  mainModule: Schema.String,
  modules: Schema.Array(Module).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(functions.modulesMax)
  ),
  bindings: Schema.optionalKey(
    Schema.Array(FunctionsBinding).check(Schema.isMaxLength(functions.bindingsMax))
  ),
  vars: Schema.optionalKey(Schema.Record(Schema.String, Variable)),
  crons: Schema.optionalKey(
    Schema.Array(Schema.String).check(Schema.isMaxLength(functions.cronsMax))
  ),
  compatibilityDate: Schema.optionalKey(CompatibilityDate),
  /** False: the code answers pages of other origins itself. */
  cors: Schema.optionalKey(Schema.Boolean),
  message: Schema.optionalKey(textUpTo(functions.messageMaxCharacters))
})
export type NewFunctionsDeployment = typeof NewFunctionsDeployment.Type

/** A version of the code. `url` calls the live version. */
export const FunctionsDeployment = Schema.Struct({
  version: Schema.Int,
  live: Schema.Boolean,
  url: Schema.String,
  createdAt: Timestamp,
  activatedAt: Schema.NullOr(Timestamp),
  message: Schema.NullOr(Schema.String),
  compatibilityDate: Schema.NullOr(Schema.String),
  mainModule: Schema.String,
  modules: Schema.Array(Schema.Struct({ name: Schema.String, sizeBytes: Schema.Int })),
  bindings: Schema.Array(FunctionsBinding),
  crons: Schema.Array(Schema.String),
  // Both absent in responses of a service of release 0.1.
  cors: Schema.optionalKey(Schema.Boolean),
  unsetSecrets: Schema.optionalKey(Schema.Array(Schema.String))
}).annotate({
  identifier: "FunctionsDeployment",
  description:
    "A version of the code of an environment's Functions. `url` calls the live version. `unsetSecrets` are " +
    "secrets that the code binds and nobody has set: they are undefined in `env`. Without `cors` the code " +
    "answers pages of other origins itself."
})
export type FunctionsDeployment = typeof FunctionsDeployment.Type

/** The response of a new version. */
export const FunctionsDeployed = FunctionsDeployment.pipe(HttpApiSchema.status(201))

export const FunctionsDeploymentPage = Schema.Struct({
  deployments: Schema.Array(FunctionsDeployment),
  nextCursor: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "FunctionsDeploymentPage",
  description: "Versions of the code, newest first."
})
