/**
 * `svc config pull`. It never overwrites edits that were not pushed. Beside a file without a
 * `$schema` it writes a schema file. Editors use a local schema at once, but ask before they load
 * one from a URL.
 */
import { Effect, Option, Path, Result, type Schema } from "effect"
import type { EnvironmentName } from "#rpc/auth"
import { changedPaths } from "#rpc/config-document/changes"
import { configJsonSchemaText } from "#rpc/config-document/json-schema"
import { configText } from "#rpc/config-document/diff"
import { isJsonObject, parseConfig, withoutSchema } from "./document.ts"
import { exitCodes, Failure } from "./failures.ts"
import { readText, writeText } from "./files.ts"
import { printJson, printResult } from "./output.ts"
import { readConfig, recentConfigs } from "./service.ts"
import { digestOf, lastSyncState, remember } from "./sync-state.ts"
import { resolveTarget } from "./checked-target.ts"
import { nameOf, type Target } from "./target.ts"

/** The config of an environment with `$schema` first. */
const withSchema = (schema: string, document: Schema.Json): Schema.Json => {
  const bare = withoutSchema(document)
  return isJsonObject(bare) ? { $schema: schema, ...bare } : bare
}

/** The `$schema` of a document. */
const schemaOf = (document: Schema.Json | undefined): string | undefined => {
  const named = isJsonObject(document) ? document["$schema"] : undefined
  return typeof named === "string" ? named : undefined
}

const unpushedEdits = (file: string, env: EnvironmentName, name: string) =>
  new Failure({
    exitCode: exitCodes.no,
    code: "unpushed_edits",
    message: `${file} differs from ${name}, and has edits that were never pushed.`,
    hints: [
      `svc config diff ${file} --env ${env}           shows the difference`,
      `svc config pull ${file} --env ${env} --force   overwrites the file`
    ]
  })

/**
 * Whether a pull may replace a file: it is unchanged since the last pull or push, or some push stored the
 * same document, such as that of `svc dev` or of another machine.
 */
const replaceable = Effect.fnUntraced(function* (
  target: Target,
  file: string,
  document: Schema.Json | undefined
) {
  if (document === undefined) return false
  const synced = yield* lastSyncState(target, file)
  if (synced?.digest === digestOf(document)) return true
  const wanted = withoutSchema(document)
  const pushed = yield* recentConfigs(target)
  return pushed.some((each) => changedPaths(wanted, withoutSchema(each)).length === 0)
})

export const pull = Effect.fn(function* (options: {
  readonly file: string
  readonly env: Option.Option<EnvironmentName>
  readonly force: boolean
}) {
  const { env, file, force } = options
  const path = yield* Path.Path
  const target = yield* resolveTarget(env)
  const name = nameOf(target)
  const { document, version } = yield* readConfig(target)
  const { base, dir } = path.parse(file)
  const ownSchema = `${path.parse(base).name}.schema.json`
  if (file === "-") return yield* printJson(configText(withoutSchema(document)).trimEnd())

  const text = yield* readText(file)
  const local = text === undefined ? undefined : Result.getOrUndefined(parseConfig(text))?.document
  const same =
    local !== undefined && changedPaths(withoutSchema(local), withoutSchema(document)).length === 0
  if (text !== undefined && !same && !force && !(yield* replaceable(target, file, local))) {
    return yield* unpushedEdits(file, target.place.environment, name)
  }
  const schema = schemaOf(local) ?? `./${ownSchema}`
  if (!same || schemaOf(local) === undefined) {
    yield* writeText(file, configText(withSchema(schema, document)))
  }
  const writesSchema = schema === `./${ownSchema}`
  if (writesSchema) yield* writeText(path.join(dir, ownSchema), configJsonSchemaText())
  yield* remember(target, file, { version, digest: digestOf(document) })
  yield* printResult(
    { environment: target.place.environment, configVersion: version, file, changed: !same },
    [
      same
        ? `${file} is up to date with ${name} (version ${version}).`
        : `Pulled ${name} (version ${version}) into ${file}.`
    ]
  )
})
