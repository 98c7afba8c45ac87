/** Sizes of an environment's stored data, from its files. */
import { createHash, createHmac } from "node:crypto"
import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import type { FunctionBinding } from "../program.ts"
import type { FunctionResources } from "../runtime.ts"

const bytesBelow = (directory: string): number => {
  if (!existsSync(directory)) return 0
  let bytes = 0
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    // The runtime may remove a file meanwhile.
    bytes += statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}

/** File of a simulated resource. Miniflare derives its name as workerd does for a durable object. */
const databaseFile = (storage: Storage, name: string): string => {
  const key = createHash("sha256").update(storage.object).digest()
  const mac = (bytes: string | Buffer) =>
    createHmac("sha256", key).update(bytes).digest().subarray(0, halfBytes)
  const first = mac(name)
  const id = Buffer.concat([first, mac(first)]).toString("hex")
  return join(storage.folder, storage.object, `${id}.sqlite`)
}

const halfBytes = 16

interface Storage {
  readonly folder: string
  readonly object: string
}

const storages = {
  db: { folder: "d1", object: "miniflare-D1DatabaseObject" },
  kv: { folder: "kv", object: "miniflare-KVNamespaceObject" },
  files: { folder: "r2", object: "miniflare-R2BucketObject" }
} as const

const fileBytes = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Returns the sizes of the resources that these bindings name. */
export const resourcesOf = (
  data: string,
  bindings: ReadonlyArray<FunctionBinding>,
  waiting: ReadonlyMap<string, number>
): FunctionResources => {
  const named = (type: FunctionBinding["type"]) =>
    bindings.flatMap(({ name, type: its }) => (its === type ? [name] : []))
  const sized = (type: keyof typeof storages) =>
    named(type).map((binding) => {
      const storage = storages[type]
      const file = join(data, databaseFile(storage, binding))
      const rows = fileBytes(file) + fileBytes(`${file}-wal`)
      return { binding, sizeBytes: rows + bytesBelow(join(data, storage.folder, binding)) }
    })
  return {
    databases: sized("db"),
    kv: sized("kv"),
    files: sized("files"),
    queues: named("queue").map((binding) => ({ binding, messages: waiting.get(binding) ?? 0 }))
  }
}
