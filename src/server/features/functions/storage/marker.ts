/** Which epoch has last opened the data of an environment on this disk, to know whether it is the newest. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const name = "epoch"

/** The epoch that has last opened the data here; undefined: none has. */
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
