/**
 * The workers of an environment, as miniflare describes them: the player's modules behind the entry point,
 * the way out, the administration, and one worker for each binding of the service's own. Pure.
 */
import { readFileSync } from "node:fs"
import { posix } from "node:path"
import type { MiniflareOptions, WorkerOptions } from "miniflare"
import type { FunctionBinding, FunctionModule } from "../program.ts"

/** What a configuration is compiled from; secrets are plain here. */
export interface CompileInput {
  readonly mainModule: string
  readonly modules: ReadonlyArray<FunctionModule>
  readonly bindings: ReadonlyArray<FunctionBinding>
  readonly vars: Readonly<Record<string, string>>
  readonly secrets: Readonly<Record<string, string>>
  readonly compatibilityDate: string
  readonly subRequests: number
  /** The key that signs the ids of calls, in hexadecimal. */
  readonly callKey: string
  /** Where databases, KV and files are. */
  readonly dataDirectory: string
  /** The socket of the service, which bindings of its own call. */
  readonly hostSocket: string
  /** Addresses that no function may reach, although they are public. */
  readonly deniedAddresses: ReadonlyArray<string>
}

const source = (name: string): string =>
  readFileSync(new URL(`../workers/${name}.js`, import.meta.url), "utf8")

/** Modules of the service beside those of the player. */
const ownPrefix = "__svc_"
const root = "/functions"

type Module = Extract<WorkerOptions["modules"], ReadonlyArray<unknown>>[number]

const kinds = {
  esm: "ESModule",
  cjs: "CommonJS",
  text: "Text",
  data: "Data",
  wasm: "CompiledWasm"
} as const

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8")

const moduleOf = ({ content, name, type }: FunctionModule): Module => {
  const path = posix.join(root, name)
  // An own type of module is missing for JSON. Text in quotes cannot end the expression.
  if (type === "json") {
    const contents = `export default JSON.parse(${JSON.stringify(text(content))})`
    return { type: "ESModule", path, contents }
  }
  const isBinary = type === "data" || type === "wasm"
  return { type: kinds[type], path, contents: isBinary ? content : text(content) }
}

/** The types of the bindings that store. */
const storesOf = (bindings: ReadonlyArray<FunctionBinding>): Record<string, string> =>
  Object.fromEntries(
    bindings
      .filter(({ type }) => type === "db" || type === "kv" || type === "files")
      .map(({ name, type }) => [name, type])
  )

/** The module that starts first: it prepares `fetch` before any module of the player runs. */
const entryOf = ({ bindings, mainModule }: CompileInput): string => {
  const main = JSON.stringify(`./${mainModule}`)
  const classes = bindings.flatMap((binding) =>
    binding.type === "durableObject" && binding.class !== undefined ? [binding.class] : []
  )
  return [
    `import { serve } from "./${ownPrefix}calls.mjs"`,
    `import * as program from ${main}`,
    ...(classes.length === 0
      ? []
      : [`export { ${[...new Set(classes)].join(", ")} } from ${main}`]),
    `export default serve(program, ${JSON.stringify(storesOf(bindings))})`
  ].join("\n")
}

const named = (bindings: ReadonlyArray<FunctionBinding>, type: FunctionBinding["type"]) =>
  bindings.filter((binding) => binding.type === type)

const identical = (bindings: ReadonlyArray<FunctionBinding>): Record<string, string> =>
  Object.fromEntries(bindings.map(({ name }) => [name, name]))

/** Databases, KV and files: the service has them as well, to query and to migrate. */
const storageOf = (bindings: ReadonlyArray<FunctionBinding>) => ({
  d1Databases: identical(named(bindings, "db")),
  kvNamespaces: identical(named(bindings, "kv")),
  r2Buckets: identical(named(bindings, "files"))
})

/** A socket of a worker; its address is given at the start. */
const socket = [{ host: "127.0.0.1", port: 0 }]

const mainWorker = (input: CompileInput): WorkerOptions => {
  const { bindings, compatibilityDate, modules, secrets, vars } = input
  const secretNames = new Set(named(bindings, "secret").map(({ name }) => name))
  const queues = named(bindings, "queue").map(
    ({ name }) => [name, { scriptName: "svc-queue", bindings: { name } }] as const
  )
  return {
    name: "main",
    modulesRoot: root,
    modules: [
      { type: "ESModule", path: `${root}/${ownPrefix}entry.mjs`, contents: entryOf(input) },
      { type: "ESModule", path: `${root}/${ownPrefix}calls.mjs`, contents: source("calls") },
      { type: "ESModule", path: `${root}/${ownPrefix}storage.mjs`, contents: source("storage") },
      ...modules.map(moduleOf)
    ],
    compatibilityDate,
    compatibilityFlags: ["nodejs_compat"],
    ...storageOf(bindings),
    durableObjects: Object.fromEntries(
      named(bindings, "durableObject").map(({ class: className = "", name }) => [
        name,
        { className, useSQLite: true }
      ])
    ),
    bindings: {
      ...vars,
      ...Object.fromEntries(Object.entries(secrets).filter(([name]) => secretNames.has(name)))
    },
    wrappedBindings: { svc: { scriptName: "svc-api" }, ...Object.fromEntries(queues) },
    outboundService: "egress",
    unsafeDirectSockets: socket
  }
}

const ownWorker = (name: string, script: string, options: Partial<WorkerOptions>) =>
  ({ name, modules: true, script: source(script), ...options }) as WorkerOptions

const optionsOf = (input: CompileInput): MiniflareOptions => {
  const { callKey, compatibilityDate, dataDirectory, deniedAddresses, subRequests } = input
  const host = { external: { address: `unix:${input.hostSocket}`, http: {} } }
  return {
    // Else miniflare fetches a description of the visitor from a public service.
    cf: false,
    structuredWorkerdLogs: true,
    d1Persist: posix.join(dataDirectory, "d1"),
    kvPersist: posix.join(dataDirectory, "kv"),
    r2Persist: posix.join(dataDirectory, "r2"),
    durableObjectsPersist: posix.join(dataDirectory, "do"),
    cachePersist: posix.join(dataDirectory, "cache"),
    workers: [
      mainWorker(input),
      ownWorker("admin", "admin", {
        compatibilityDate,
        ...storageOf(input.bindings),
        unsafeDirectSockets: socket
      }),
      ownWorker("egress", "egress", {
        compatibilityDate,
        bindings: { key: callKey, limit: subRequests },
        outboundService: {
          network: {
            allow: ["public"],
            deny: [...deniedAddresses],
            tlsOptions: { trustBrowserCas: true }
          }
        }
      }),
      ownWorker("svc-queue", "queue", { serviceBindings: { host } }),
      ownWorker("svc-api", "svc", { serviceBindings: { host } })
    ]
  }
}

/**
 * The options of miniflare for an environment. Their type stays in here: the declarations of miniflare need
 * a package that users of ours do not have.
 */
export const miniflareOptions: (input: CompileInput) => object = optionsOf
