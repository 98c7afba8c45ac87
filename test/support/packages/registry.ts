/**
 * An npm registry for the packages of `npm run packages`, from their archives. It has no other package:
 * npm asks it for the scope only.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { basename, join } from "node:path"
import { Schema } from "effect"
import { scope } from "#server/build/package-list"

const Manifest = Schema.fromJsonString(
  Schema.StructWithRest(Schema.Struct({ name: Schema.String, version: Schema.String }), [
    Schema.Record(Schema.String, Schema.Unknown)
  ])
)

const read = (archive: string) => {
  const bytes = readFileSync(archive)
  const words = ["xzf", archive, "-O", "package/package.json"]
  const manifest = Schema.decodeUnknownSync(Manifest)(
    execFileSync("tar", words, { encoding: "utf8" })
  )
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`
  return { file: basename(archive), bytes, manifest, integrity }
}

/** Serves the archives; returns a function that makes a folder use them, and one that stops. */
export const serveArchives = async (archives: ReadonlyArray<string>) => {
  const packages = archives.map(read)
  let url = ""
  const documentOf = ({ file, integrity, manifest }: (typeof packages)[number]) => ({
    name: manifest.name,
    "dist-tags": { latest: manifest.version },
    versions: {
      [manifest.version]: { ...manifest, dist: { tarball: `${url}/${file}`, integrity } }
    }
  })
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? "").slice(1))
    const archive = packages.find(({ file }) => file === path)
    if (archive !== undefined) return void response.end(archive.bytes)
    const named = packages.find(({ manifest }) => manifest.name === path)
    response.statusCode = named === undefined ? 404 : 200
    response.end(JSON.stringify(named === undefined ? {} : documentOf(named)))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (typeof address === "string" || address === null) throw new Error("The registry has no port.")
  url = `http://127.0.0.1:${address.port}`
  return {
    /** Writes the `.npmrc` by which npm asks this registry for the scope. */
    use: (folder: string) => writeFileSync(join(folder, ".npmrc"), `${scope}:registry=${url}/\n`),
    stop: () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      })
  }
}
