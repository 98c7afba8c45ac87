/** Sizes of an environment's stored data, from its files. */
import { createHash, createHmac } from "node:crypto"
import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import type { StoredResource } from "../program.ts"
import type { FunctionResources } from "../stored-data.ts"

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

/** Returns the sizes of those resources that have data, and the messages of queues. */
export const resourcesOf = (
  data: string,
  resources: ReadonlyArray<StoredResource>,
  waiting: ReadonlyMap<string, number>
): FunctionResources => {
  const sized = (type: StoredResource["type"]) =>
    resources.flatMap(({ name: binding, type: its }) => {
      if (its !== type) return []
      const storage = storages[type]
      const file = join(data, databaseFile(storage, binding))
      const rows = fileBytes(file) + fileBytes(`${file}-wal`)
      const sizeBytes = rows + bytesBelow(join(data, storage.folder, binding))
      return sizeBytes === 0 ? [] : [{ binding, sizeBytes }]
    })
  return {
    databases: sized("db"),
    kv: sized("kv"),
    files: sized("files"),
    queues: Array.from(waiting, ([binding, messages]) => ({ binding, messages }))
  }
}
