/** The files that the image's bundler gets are all that it needs. Runs nothing in Docker. */
import { execFile } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { at } from "#testing/players"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** What the stage of the Dockerfile copies, and the program that it runs at last. */
const [, stage = ""] =
  /^FROM \S+ AS browser$([^]*?)^FROM /m.exec(readFileSync(join(root, "Dockerfile"), "utf8")) ?? []
const copied = Array.from(stage.matchAll(/^COPY (.+) \S+$/gm), ([, paths = ""]) =>
  paths.split(" ")
).flat()
const [, program = ""] = /^RUN node (\S+)$/m.exec(stage) ?? []

/** Bundles in a folder with these paths of the checkout alone. */
const bundleOf = async (paths: ReadonlyArray<string>): Promise<unknown> => {
  const folder = mkdtempSync(join(tmpdir(), "svc-image-"))
  try {
    for (const path of paths) cpSync(join(root, path), join(folder, path), { recursive: true })
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    await promisify(execFile)(process.execPath, [program], { cwd: folder })
    return JSON.parse(readFileSync(join(folder, "dist/browser.json"), "utf8"))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe("The image", () => {
  it("bundles the dashboard and the client from what it copies", async () => {
    const bundle = await bundleOf(copied)
    assert.match(String(at(bundle, "hash")), /^[0-9a-f]{16}$/)
    assert.match(String(at(bundle, "dashboard", "names", "main")), /^main-.+\.js$/)
  })

  it("fails to build without the contracts, which browsers would miss", async () => {
    const failure: unknown = await bundleOf(copied.filter((path) => path !== "rpc")).catch(
      (error: unknown) => error
    )
    assert.include(String(at(failure, "stderr")), "Could not resolve '#rpc/")
  })
})
