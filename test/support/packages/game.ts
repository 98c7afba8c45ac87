/** A game in a folder of its own, with the packages of `npm run packages` installed. */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { inject } from "vitest"
import { installed, newFolder, unpackGame } from "./folder.ts"

/** The archives of all packages, which are built once for all test files. */
export const buildPackages = (): ReadonlyArray<string> => inject("archives")

/** A new folder. The end of the run removes it. */
export const makeFolder = (prefix: string): string => newFolder(inject("folder"), prefix)

/** A folder with these packages, and the installed ones that the game asks for. */
export const makeGame = (
  archives: ReadonlyArray<string>,
  dependencies: ReadonlyArray<string> = []
): string => unpackGame(inject("folder"), archives, dependencies)

/** Runs a program of this repository in the game, and returns its output. */
export const runIn = (game: string, program: string, ...words: ReadonlyArray<string>): string => {
  try {
    return execFileSync(join(installed, ".bin", program), words, { cwd: game, encoding: "utf8" })
  } catch (error) {
    const output =
      typeof error === "object" && error !== null && "stdout" in error ? error.stdout : ""
    const message = `${program} ${words.join(" ")} failed:\n${String(output)}`
    throw new Error(message, { cause: error })
  }
}

/** The manifest of an installed package. */
export const manifestOf = (game: string, name: string): unknown =>
  JSON.parse(readFileSync(join(game, "node_modules/@player-backend", name, "package.json"), "utf8"))

const nodes = new Map<string, string>()

/** The program of another version of Node, which npm installs in a folder of its own, once for each file. */
export const nodeOf = (version: string): string => {
  const known = nodes.get(version)
  if (known !== undefined) return known
  const folder = makeFolder("node-")
  writeFileSync(join(folder, "package.json"), `{ "name": "node" }`)
  const words = ["install", `node@${version}`, "--no-audit", "--no-fund", "--prefer-offline"]
  execFileSync("npm", words, { cwd: folder, stdio: "ignore" })
  const program = join(folder, "node_modules/node/bin/node")
  nodes.set(version, program)
  return program
}
