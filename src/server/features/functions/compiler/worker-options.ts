/**
 * Workers of an environment as miniflare options: the player's modules behind the entry point, the
 * egress worker, and the administration worker. Each binding of the service has its own worker. Pure.
 */
import { readFileSync } from "node:fs"
import { posix } from "node:path"
import type { MiniflareOptions, WorkerOptions } from "miniflare"
import type { FunctionBinding, FunctionModule } from "../program.ts"

/** Input of a compilation. Secrets are in plain text. */
export interface CompileInput {
  readonly mainModule: string
  readonly modules: ReadonlyArray<FunctionModule>
  readonly bindings: ReadonlyArray<FunctionBinding>
  readonly vars: Readonly<Record<string, string>>
  readonly secrets: Readonly<Record<string, string>>
  readonly compatibilityDate: string
  readonly subRequests: number
  /** Key that signs the ids of calls, in hexadecimal. */
  readonly callKey: string
  /** Stands for the key between service and process, which each start fills in. */
  readonly sealKey: string
  /** Directory of databases, KV and files. */
  readonly dataDirectory: string
  /** Path of the service's socket, which the service's own bindings call. */
  readonly hostSocket: string
  /** Public addresses that functions must not reach. */
  readonly deniedAddresses: ReadonlyArray<string>
}

const source = (name: string): string =>
  readFileSync(new URL(`../workers/${name}.js`, import.meta.url), "utf8")

/** Name prefix of the service's modules, which stand beside those of the player. */
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

/** Types of the storage bindings: databases, KV and files. */
const storesOf = (bindings: ReadonlyArray<FunctionBinding>): Record<string, string> =>
  Object.fromEntries(
    bindings
      .filter(({ type }) => type === "db" || type === "kv" || type === "files")
      .map(({ name, type }) => [name, type])
  )

/** First module of the worker. It prepares `fetch` before any module of the player runs. */
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

/** Databases, KV and files. The administration worker also binds them, for queries and migrations. */
const storageOf = (bindings: ReadonlyArray<FunctionBinding>) => ({
  d1Databases: identical(named(bindings, "db")),
  kvNamespaces: identical(named(bindings, "kv")),
  r2Buckets: identical(named(bindings, "files"))
})

/** Socket of a worker. The start replaces its address. */
const socket = [{ host: "127.0.0.1", port: 0 }]

const mainWorker = (input: CompileInput): WorkerOptions => {
  const { bindings, compatibilityDate, modules, sealKey, secrets, vars } = input
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
    // The module of a wrapped binding has bindings of its own, which the player's modules cannot reach.
    wrappedBindings: {
      svc: { scriptName: "svc-api" },
      [`${ownPrefix}authentic`]: { scriptName: "svc-authentic", bindings: { key: sealKey } },
      ...Object.fromEntries(queues)
    },
    outboundService: "egress",
    unsafeDirectSockets: socket
  }
}

const ownWorker = (name: string, script: string, options: Partial<WorkerOptions> = {}) =>
  ({ name, modules: true, script: source(script), ...options }) as WorkerOptions

/** Statements and migrations; calls of the service alone reach them. */
const adminWorker = ({ bindings, compatibilityDate, sealKey }: CompileInput): WorkerOptions => ({
  name: "admin",
  modulesRoot: root,
  modules: [
    { type: "ESModule", path: `${root}/admin.mjs`, contents: source("admin") },
    { type: "ESModule", path: `${root}/authentic.mjs`, contents: source("authentic") }
  ],
  compatibilityDate,
  ...storageOf(bindings),
  bindings: { [`${ownPrefix}key`]: sealKey },
  unsafeDirectSockets: socket
})

const optionsOf = (input: CompileInput): MiniflareOptions => {
  const { callKey, compatibilityDate, dataDirectory, deniedAddresses, sealKey, subRequests } = input
  const service = { external: { address: `unix:${input.hostSocket}`, http: {} } }
  const host = { scriptName: "svc-host", bindings: { key: sealKey } }
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
      adminWorker(input),
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
      ownWorker("svc-authentic", "authentic"),
      ownWorker("svc-host", "host", { serviceBindings: { host: service } }),
      ownWorker("svc-queue", "queue", { wrappedBindings: { host } }),
      ownWorker("svc-api", "svc", { wrappedBindings: { host } })
    ]
  }
}

/**
 * Returns the miniflare options of an environment. The type is opaque, because miniflare's declarations
 * need a package that users of this package do not install.
 */
export const miniflareOptions: (input: CompileInput) => object = optionsOf
