/** The folder of a project's functions: its settings in `svc.functions.json`, and its code as one module. */
import { readFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Effect, Schema } from "effect"
import { NewFunctionsDeployment } from "#rpc/functions/deployment"
import { deploymentIssues } from "#rpc/functions/issues"
import { exitCodes, Failure, usageFailure } from "./failures.ts"

/** The settings file in the folder of the functions. */
export const settingsFile = "svc.functions.json"

const { bindings, compatibilityDate, cors, crons, vars } = NewFunctionsDeployment.fields

const ProjectSettings = Schema.Struct({
  main: Schema.String,
  bindings,
  vars,
  crons,
  cors,
  compatibilityDate
})
export type ProjectSettings = typeof ProjectSettings.Type

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(ProjectSettings), {
  errors: "all",
  onExcessProperty: "error"
})

/** Reads the settings of a folder. */
export const readSettings = Effect.fnUntraced(function* (folder: string) {
  const file = join(folder, settingsFile)
  const text = yield* Effect.tryPromise({
    try: () => readFile(file, "utf8"),
    catch: () => usageFailure(`There is no ${file}.`, "svc functions init   makes one")
  })
  return yield* Effect.mapError(decode(text), ({ message }) =>
    usageFailure(`${file} is not valid: ${message}`)
  )
})

const invalid = (message: string, ...hints: ReadonlyArray<string>) =>
  new Failure({ exitCode: exitCodes.no, code: "invalid_functions", message, hints })

/** Imports that the runtime itself provides. */
const provided = /^(?:node|cloudflare|workerd):/

/** Bundles the code of a folder into one module. */
export const bundle = (folder: string, main: string): Effect.Effect<string, Failure> =>
  Effect.tryPromise({
    try: async () => {
      // Loaded only here: other commands start without it.
      const { rolldown } = await import("rolldown")
      const build = await rolldown({
        input: main,
        cwd: resolve(folder),
        external: provided,
        platform: "browser",
        resolve: {
          conditionNames: ["workerd", "worker", "browser", "import", "module", "default"]
        },
        logLevel: "silent"
      })
      const { output } = await build.generate({ format: "esm", codeSplitting: false })
      await build.close()
      const [chunk] = output
      return chunk.code
    },
    catch: (cause) => invalid(`Failed to bundle ${join(folder, main)}`, String(cause))
  })

/** The deployment of a folder, with its code as `main.js`. */
export const readDeployment = Effect.fnUntraced(function* (
  folder: string,
  message: string | undefined
) {
  const { main, ...settings } = yield* readSettings(folder)
  const code = yield* bundle(folder, main)
  const deployment: NewFunctionsDeployment = {
    mainModule: "main.js",
    modules: [{ name: "main.js", type: "esm", content: Buffer.from(code).toString("base64") }],
    ...settings,
    ...(message === undefined ? {} : { message })
  }
  const issues = deploymentIssues(deployment)
  if (issues.length > 0) {
    return yield* invalid(
      `${join(folder, settingsFile)} has ${issues.length === 1 ? "a problem" : "problems"}.`,
      ...issues.map((issue) => `${issue.path}: ${issue.message}`)
    )
  }
  return deployment
})
