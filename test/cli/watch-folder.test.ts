/** What `svc functions dev` reloads on. */
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { watchFolder } from "#cli/watch-folder"

/** Runs `act` until a change is seen. */
const until = async (changes: () => number, act: () => Promise<void>): Promise<void> => {
  const before = changes()
  await act()
  while (changes() === before) await new Promise((resolve) => setImmediate(resolve))
}

describe("a watched folder", () => {
  it("reports each save, also of a file that an editor replaces, and in a new folder", async () => {
    const folder = await mkdtemp(join(tmpdir(), "svc-watch-"))
    const file = join(folder, "index.ts")
    await writeFile(file, "1")
    let count = 0
    const changes = (): number => count
    const stop = watchFolder(folder, () => (count += 1))
    try {
      await until(changes, () => writeFile(file, "2"))
      await until(changes, async () => {
        await writeFile(`${folder}.draft`, "3")
        await rename(`${folder}.draft`, file)
      })
      await until(changes, () => writeFile(file, "4"))
      await until(changes, () => writeFile(file, "5"))
      await until(changes, () => mkdir(join(folder, "lib")))
      await until(changes, () => writeFile(join(folder, "lib/one.ts"), "1"))
      const before = changes()
      await mkdir(join(folder, "node_modules"))
      await writeFile(join(folder, ".hidden"), "1")
      await until(changes, () => writeFile(join(folder, "last.ts"), "1"))
      assert.isAtMost(changes() - before, 2)
    } finally {
      stop()
      await rm(folder, { recursive: true })
    }
  })
})
