/** Programs that load the client package: they are installed beside it, from the npm registry. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { inject } from "vitest"
import { run } from "./run.ts"

const installed = inject("consumers")

/** Whether the registry could be reached, from which they are installed. */
export const hasConsumers = installed !== null

/** Ends the name of a test that is skipped without the registry. */
export const needsRegistry = hasConsumers ? "" : " (skipped: needs the npm registry)"

/** A file of one of the programs. */
export const consumerAt = (path: string): string => join(installed ?? "", "node_modules", path)

/** Makes the folder of a game beside the programs, which find the client package there. */
export const makeConsumer = (files: Readonly<Record<string, string>>): string => {
  const game = mkdtempSync(join(installed ?? "", "game-"))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(game, name)), { recursive: true })
    writeFileSync(join(game, name), text)
  }
  return game
}

/** The environment of a program: its caches and settings go into its folder. */
export const envOf = (folder: string): NodeJS.ProcessEnv => ({
  PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
  HOME: folder,
  TMPDIR: folder,
  DENO_DIR: join(folder, "deno"),
  DENO_NO_UPDATE_CHECK: "1",
  NEXT_TELEMETRY_DISABLED: "1",
  NO_COLOR: "1"
})

/** Runs one of the programs, or Node, in a folder, and returns what it printed. */
export const runConsumer = (
  folder: string,
  program: string,
  ...words: ReadonlyArray<string>
): Promise<string> => run({ cwd: folder, env: envOf(folder) }, program, ...words)
