/** The seeded development environment of a runner process, by the keys in its data directory. */
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { at, type TestTarget } from "#testing/players"

export const targetOf = (dataDir: string, url: string) =>
  Effect.promise(async (): Promise<TestTarget> => {
    const keys: unknown = JSON.parse(await readFile(join(dataDir, "dev-keys.json"), "utf8"))
    const development = at(keys, "development")
    return {
      url,
      publishableKey: String(at(development, "publishableKey")),
      secretKey: String(at(development, "secretKey"))
    }
  })
