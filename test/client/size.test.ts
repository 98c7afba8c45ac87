/** The size of the client in a browser bundle, minified and compressed. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { rolldown } from "rolldown"
import { clientBundleText } from "#server/client-bundle"

const KiB = 1024

const bundled = async (entry: string) => {
  const input = fileURLToPath(new URL(`../../${entry}`, import.meta.url))
  const bundle = await rolldown({ input, platform: "browser", logLevel: "silent" })
  const { output } = await bundle.generate({ minify: true })
  await bundle.close()
  const [{ code, moduleIds }] = output
  return { bytes: gzipSync(code, { level: 9 }).length, moduleIds }
}

describe("src/server/http/sdk/bundle.json", () => {
  it("commits what the client builds (otherwise: npm run generate)", async () => {
    const file = new URL("../../src/server/http/sdk/bundle.json", import.meta.url)
    const isCurrent = readFileSync(file, "utf8") === (await clientBundleText())
    // A comparison of the texts would print 260 KB.
    assert.isTrue(isCurrent)
  })
})

describe("the client in a browser bundle", () => {
  it("takes at most 15 KiB, without effect", async () => {
    const { bytes, moduleIds } = await bundled("src/client/client.ts")
    assert.isAtMost(bytes, 15 * KiB)
    assert.deepStrictEqual(
      moduleIds.filter((id) => id.includes("node_modules")),
      []
    )
  })

  it("takes at most 8.75 KiB for sign-in and rooms alone", async () => {
    const { bytes } = await bundled("test/support/client/rooms-only.ts")
    assert.isAtMost(bytes, 8.75 * KiB)
  })
})
