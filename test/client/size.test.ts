/** The size of the client in a browser bundle, minified and compressed. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { rolldown } from "rolldown"
import { clientBundleText } from "#server/build/client-bundle"
import { at } from "#testing/players"

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

const committed = () =>
  readFileSync(new URL("../../src/server/http/sdk/bundle.json", import.meta.url), "utf8")

describe("src/server/http/sdk/bundle.json", () => {
  it("commits the bundle that the client builds (otherwise: npm run generate)", async () => {
    const isCurrent = committed() === (await clientBundleText())
    // A comparison of the texts would print 260 KB.
    assert.isTrue(isCurrent)
  })

  it("keeps the committed client bundle within 21 KiB, compressed", () => {
    const code = String(at(JSON.parse(committed()), "code"))
    assert.isAtMost(gzipSync(code, { level: 9 }).length, 21 * KiB)
  })
})

describe("the client in a browser bundle", () => {
  it("bundles the client without packages into 16.25 KiB, and 6 KiB on demand for calls and peers", async () => {
    const { first, moduleIds, onDemand } = await bundled("src/client/client.ts")
    assert.isAtMost(first, 16.25 * KiB)
    assert.isAtMost(onDemand, 6 * KiB)
    assert.deepStrictEqual(
      moduleIds.filter((id) => id.includes("node_modules")),
      []
    )
  })

  it("bundles sign-in and rooms alone into at most 9 KiB", async () => {
    const { first } = await bundled("test/support/client/rooms-only.ts")
    assert.isAtMost(first, 9 * KiB)
  })

  it("bundles all React hooks into at most 0.9 KiB", async () => {
    const { first } = await bundled("src/client/react/hooks.ts")
    assert.isAtMost(first, 0.9 * KiB)
  })
})
