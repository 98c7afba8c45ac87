/** Files on the disk of this node, the least recently used of which go first. */
import { readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, join, relative, sep } from "node:path"
import { makeOwnFolder } from "./folder.ts"

interface Found {
  readonly key: string
  readonly bytes: number
  readonly writtenAt: number
}

const filesBelow = async (root: string): Promise<ReadonlyArray<Found>> => {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const found: Array<Found> = []
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const { mtimeMs, size } = await stat(path)
    found.push({ key: relative(root, path).split(sep).join("/"), bytes: size, writtenAt: mtimeMs })
  }
  return found.toSorted((a, b) => a.writtenAt - b.writtenAt)
}

export class DiskCache {
  readonly #root: string
  readonly #maxBytes: number
  readonly #sizes = new Map<string, number>()
  #bytes = 0

  private constructor(root: string, maxBytes: number) {
    this.#root = root
    this.#maxBytes = maxBytes
  }

  /** Opens a cache with the files that the process before has left. */
  static async open(root: string, maxBytes: number): Promise<DiskCache> {
    await makeOwnFolder(root)
    const cache = new DiskCache(root, maxBytes)
    for (const { bytes, key } of await filesBelow(root)) cache.#count(key, bytes)
    await cache.#evict()
    return cache
  }

  /** Path of a file; undefined if it is not here. Processes that share the folder see what others take. */
  async get(key: string): Promise<string | undefined> {
    const path = join(this.#root, key)
    const bytes = await stat(path).then(
      ({ size }) => size,
      () => undefined
    )
    this.#forget(key)
    if (bytes === undefined) return undefined
    this.#count(key, bytes)
    return path
  }

  /** Moves in a file of the same file system. Returns its new path. */
  async take(key: string, file: string): Promise<string> {
    const path = join(this.#root, key)
    const { size } = await stat(file)
    await makeOwnFolder(dirname(path))
    await rename(file, path)
    this.#forget(key)
    this.#count(key, size)
    await this.#evict()
    return path
  }

  /** Removes the files that were written before a time, in milliseconds. */
  async removeOlder(millis: number): Promise<void> {
    for (const { key, writtenAt } of await filesBelow(this.#root)) {
      if (writtenAt < millis) await this.remove(key)
    }
  }

  async remove(key: string): Promise<void> {
    this.#forget(key)
    await rm(join(this.#root, key), { force: true })
  }

  /** Removes the files below a folder. */
  async removeBelow(folder: string): Promise<void> {
    for (const key of this.#sizes.keys()) if (key.startsWith(`${folder}/`)) this.#forget(key)
    await rm(join(this.#root, folder), { recursive: true, force: true })
  }

  #count(key: string, bytes: number): void {
    this.#sizes.set(key, bytes)
    this.#bytes += bytes
  }

  #forget(key: string): void {
    this.#bytes -= this.#sizes.get(key) ?? 0
    this.#sizes.delete(key)
  }

  /**
   * Evicts the files that were used longest ago. The newest file stays even if it is larger than
   * the whole cache: it is about to be read.
   */
  async #evict(): Promise<void> {
    for (const key of this.#sizes.keys()) {
      if (this.#bytes <= this.#maxBytes || this.#sizes.size === 1) return
      await this.remove(key)
    }
  }
}
