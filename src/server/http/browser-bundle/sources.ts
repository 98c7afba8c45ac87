/**
 * The sources of what browsers load, and the form of their bundle. The bundler imports this file, so it
 * needs nothing but Node.
 */
import { createHash } from "node:crypto"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** A file for browsers; `gzip` is its compressed content in base64. */
export interface BundledFile {
  readonly type: string
  readonly gzip: string
}

/** Everything that is bundled for browsers. */
export interface BundleContent {
  /** Hash of the sources, see {@link sourceHash}. */
  readonly hash: string
  /** The client for pages without a bundler, and its source map. */
  readonly client: { readonly code: BundledFile; readonly map: BundledFile }
  /** The dashboard: all files by name, and the names of those that its page refers to. */
  readonly dashboard: {
    readonly names: {
      readonly main: string
      readonly style: string
      readonly theme: string
      readonly icon: string
    }
    readonly files: Readonly<Record<string, BundledFile>>
  }
}

export const root = fileURLToPath(new URL("../../../..", import.meta.url))

/** The program that makes the bundle. */
export const bundler = fileURLToPath(new URL("../../build/browser-bundle.ts", import.meta.url))

/** Source folders of the bundle; the versions of packages are in the manifest. */
const sources = ["src/dashboard", "src/client", "rpc"]
const others = [bundler, join(bundler, "../client-bundle.ts"), join(root, "package.json")]

/** Hash of the sources; undefined where there are none, as in the npm package. */
export const sourceHash = async (): Promise<string | undefined> => {
  const hash = createHash("sha256")
  try {
    for (const folder of sources) {
      const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true })
      const files = entries
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
      for (const file of files.toSorted()) hash.update(file).update(await readFile(file))
    }
    for (const file of others) hash.update(await readFile(file))
  } catch {
    return undefined
  }
  return hash.digest("hex").slice(0, 16)
}
