/** The size of the client in a browser bundle, minified and compressed. */
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { rolldown } from "rolldown"
import { clientBundle } from "#server/build/client-bundle"

const KiB = 1024

/** Sizes of a bundle: what a page loads first, and the files on demand. */
const bundled = async (entry: string) => {
  const input = fileURLToPath(new URL(`../../${entry}`, import.meta.url))
  const external = ["react"] // the page has it already
  const build = await rolldown({ input, external, platform: "browser", logLevel: "silent" })
  const { output } = await build.generate({ minify: true })
  await build.close()
  const [first, ...others] = output
  const isFirst = (fileName: string) =>
    fileName === first.fileName || first.imports.includes(fileName)
  const sizes = { first: 0, onDemand: 0 }
  for (const file of [first, ...others]) {
    const bytes = file.type === "chunk" ? gzipSync(file.code, { level: 9 }).length : 0
    sizes[isFirst(file.fileName) ? "first" : "onDemand"] += bytes
  }
  return { ...sizes, moduleIds: first.moduleIds }
}

describe("the client in a browser bundle", () => {
  it("bundles the client without packages into 16.75 KiB, and 6 KiB on demand for calls and peers", async () => {
    const { first, moduleIds, onDemand } = await bundled("src/client/client.ts")
    assert.isAtMost(first, 16.75 * KiB)
    assert.isAtMost(onDemand, 6 * KiB)
    assert.deepStrictEqual(
      moduleIds.filter((id) => id.includes("node_modules")),
      []
    )
  })

  it("bundles the client for pages without a bundler into 21.5 KiB", async () => {
    const { code } = await clientBundle()
    assert.isAtMost(gzipSync(code, { level: 9 }).length, 21.5 * KiB)
  })

  it("bundles sign-in and rooms alone into at most 9.25 KiB", async () => {
    const { first } = await bundled("test/support/client/rooms-only.ts")
    assert.isAtMost(first, 9.25 * KiB)
  })

  it("bundles all React hooks into at most 0.9 KiB", async () => {
    const { first } = await bundled("src/client/react/hooks.ts")
    assert.isAtMost(first, 0.9 * KiB)
  })
})
