/**
 * Modules of a deployment. Decodes them from the request, checks and compresses them for the database.
 * Text modules must be UTF-8, and JSON modules must parse.
 */
import { promisify } from "node:util"
import { gunzip, gzip } from "node:zlib"
import { Effect, Result, Schema } from "effect"
import { InvalidRequest, PayloadTooLarge } from "#rpc/errors/codes"
import { ModuleType, type NewFunctionsDeployment } from "#rpc/functions/deployment"
import { deploymentIssues } from "#rpc/functions/issues"
import { functions } from "#rpc/functions/limits"
import type { BundleRow } from "#sql/functions/deployments"
import type { FunctionBundle, FunctionModule } from "./program.ts"

type Issue = InvalidRequest["details"]["issues"][number]

type NewModule = NewFunctionsDeployment["modules"][number]

/** Returns the decoded length of base64 text. Node skips characters outside the alphabet. */
const decodedLength = (text: string): number => {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0
  return text.length % 4 === 0 ? (text.length / 4) * 3 - padding : -1
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

const contentIssue = (type: NewModule["type"], content: Uint8Array): string | undefined => {
  if (type === "data" || type === "wasm") return undefined
  try {
    const text = utf8.decode(content)
    if (type === "json") JSON.parse(text)
    return undefined
  } catch {
    return type === "json" ? "Expected JSON in UTF-8, in base64" : "Expected UTF-8 in base64"
  }
}

const decodeModule = (
  { content, name, type }: NewModule,
  index: number
): Result.Result<FunctionModule, Issue> => {
  const path = `modules[${index}].content`
  const bytes = Buffer.from(content, "base64")
  if (bytes.length !== decodedLength(content)) {
    return Result.fail({ path, message: "Expected base64" })
  }
  const message = contentIssue(type, bytes)
  return message === undefined
    ? Result.succeed({ name, type, content: bytes })
    : Result.fail({ path, message })
}

const refuse = (issues: ReadonlyArray<Issue>) =>
  new InvalidRequest({ details: { issues: issues.slice(0, functions.issuesMax) } })

/** Checks a deployment and decodes its modules. */
export const readBundle = (
  deployment: NewFunctionsDeployment
): Result.Result<FunctionBundle, InvalidRequest | PayloadTooLarge> => {
  const issues = deploymentIssues(deployment)
  if (issues.length > 0) return Result.fail(refuse(issues))
  const decoded = deployment.modules.map(decodeModule)
  const failures = decoded.flatMap((one) => (Result.isFailure(one) ? [one.failure] : []))
  if (failures.length > 0) return Result.fail(refuse(failures))
  const modules = decoded.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  const bytes = modules.reduce((sum, { content }) => sum + content.length, 0)
  if (bytes > functions.modulesMaxBytes) {
    return Result.fail(new PayloadTooLarge({ details: { limit: functions.modulesMaxBytes } }))
  }
  const { bindings = [], compatibilityDate, mainModule, vars = {} } = deployment
  return Result.succeed({ mainModule, modules, bindings, vars, compatibilityDate })
}

const StoredModules = Schema.fromJsonString(
  Schema.Array(
    Schema.Struct({
      name: Schema.String,
      type: ModuleType,
      content: Schema.String
    })
  )
)

const compress = promisify(gzip)

const decompress = promisify(gunzip)

/** Compresses modules for the database. */
export const packModules = (modules: ReadonlyArray<FunctionModule>): Effect.Effect<Uint8Array> =>
  Effect.promise(() =>
    compress(
      JSON.stringify(
        modules.map(({ content, name, type }) => ({
          name,
          type,
          content: Buffer.from(content).toString("base64")
        }))
      )
    )
  )

/** Unpacks the version of a row with its modules. */
export const unpackBundle = Effect.fnUntraced(function* (row: BundleRow) {
  const text = yield* Effect.promise(() => decompress(row.bundle))
  const modules = yield* Effect.orDie(
    Schema.decodeUnknownEffect(StoredModules)(text.toString("utf8"))
  )
  const bundle: FunctionBundle = {
    mainModule: row.mainModule,
    modules: modules.map(({ content, name, type }) => ({
      name,
      type,
      content: Buffer.from(content, "base64")
    })),
    bindings: row.bindings,
    vars: row.vars,
    compatibilityDate: row.compatibilityDate ?? undefined
  }
  return bundle
})
