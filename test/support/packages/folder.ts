/** Folders of games in which the packages of `npm run packages` are unpacked. */
import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The installed packages of this repository. */
export const installed = fileURLToPath(new URL("../../../node_modules", import.meta.url))

/** `client` of `player-backend-client-0.1.0.tgz`. */
const nameOf = (archive: string): string => basename(archive).split("-")[2] ?? ""

/**
 * Makes a new folder that all users may enter. Under root, Postgres runs as another user, and puts its data
 * outside of a folder that it cannot enter.
 */
export const newFolder = (parent: string, prefix: string): string => {
  const folder = mkdtempSync(join(parent, prefix))
  chmodSync(folder, 0o755)
  return folder
}

/** Makes a folder with these packages, and the installed ones that the game asks for. */
export const unpackGame = (
  parent: string,
  archives: ReadonlyArray<string>,
  dependencies: ReadonlyArray<string>
): string => {
  const game = newFolder(parent, "game-")
  writeFileSync(join(game, "package.json"), `{ "name": "game", "type": "module" }`)
  for (const archive of archives) {
    const folder = join(game, "node_modules/@player-backend", nameOf(archive))
    mkdirSync(folder, { recursive: true })
    execFileSync("tar", ["xzf", archive, "-C", folder, "--strip-components", "1"])
  }
  for (const name of dependencies) {
    mkdirSync(join(game, "node_modules", name, ".."), { recursive: true })
    symlinkSync(join(installed, name), join(game, "node_modules", name))
  }
  return game
}
