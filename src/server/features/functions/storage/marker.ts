/**
 * Marker of the epoch that last opened an environment's data on this disk. It shows whether that data
 * is the newest.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const name = "epoch"

/** Returns the epoch that last opened the data here; undefined if none has. */
export const openedBy = (directory: string): number | undefined => {
  try {
    const epoch = Number(readFileSync(join(directory, name), "utf8"))
    return Number.isSafeInteger(epoch) ? epoch : undefined
  } catch {
    return undefined
  }
}

export const setOpenedBy = (directory: string, epoch: number): void => {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const draft = join(directory, `${name}.draft`)
  writeFileSync(draft, String(epoch), { flush: true })
  renameSync(draft, join(directory, name))
}
